import com.sun.net.httpserver.HttpServer;
import dev.tocsin.client.Drain;
import dev.tocsin.client.Outbox;
import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import dev.tocsin.client.model.CreateTimer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.time.Duration;

/** What a drain makes of its only row, in the database of the first argument, at a server that refuses this timer for the moment. */
class RefusedRow {
    private static final String ANSWER =
            "{\"results\":[{\"error\":{\"status\":429,\"error\":\"QUOTA_EXCEEDED\",\"message\":\"\",\"errors\":[]}}]}";

    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            exchange.getRequestBody().readAllBytes();
            byte[] answer = ANSWER.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
        String url = "http://127.0.0.1:" + server.getAddress().getPort();
        try (TocsinClient client = Tocsin.client(url).retries(0).build();
                Connection connection = DriverManager.getConnection(arguments[0])) {
            Drain drain = new Drain(client, () -> DriverManager.getConnection(arguments[0]));
            drain.createTable();
            connection.setAutoCommit(false);
            Outbox.in(connection).create(CreateTimer.of("n", "t", "http://127.0.0.1:1/").delay(Duration.ofHours(1)));
            connection.commit();
            System.out.println(drain.once());
        } finally {
            server.stop(0);
        }
    }
}
