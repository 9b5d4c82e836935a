import java.lang.reflect.Field;
import java.lang.reflect.Method;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** Starts DynamoDB Local, with its own arguments, on 127.0.0.1 alone: by itself it listens on every address. */
public class Loopback {
    public static void main(String[] arguments) throws Exception {
        Class<?> runner = Class.forName("software.amazon.dynamodb.services.local.main.ServerRunner");
        Method create = runner.getMethod("createServerFromCommandLineArgs", String[].class);
        Object local = create.invoke(null, (Object) arguments);
        Field field = local.getClass().getDeclaredField("server");
        field.setAccessible(true);
        for (Connector connector : ((Server) field.get(local)).getConnectors()) {
            ((ServerConnector) connector).setHost("127.0.0.1");
        }
        local.getClass().getMethod("start").invoke(local);
        local.getClass().getMethod("join").invoke(local);
    }
}
