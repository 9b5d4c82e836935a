import com.sun.net.httpserver.HttpServer;
import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;

/** Monitored jobs of a thread that is interrupted before one and within others, on a server that prints reports and refuses them. */
class Interrupted {
    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            String report = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            System.out.println(report.replaceAll(".*\"event\":\"(\\w+)\".*", "$1"));
            exchange.sendResponseHeaders(404, -1);
            exchange.close();
        });
        server.start();
        try (TocsinClient client = Tocsin.client("http://127.0.0.1:" + server.getAddress().getPort()).build()) {
            Thread.currentThread().interrupt();
            run(client, () -> "interrupted before: " + Thread.currentThread().isInterrupted());
            run(client, () -> {
                Thread.currentThread().interrupt();
                return "result";
            });
            run(client, () -> {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("of the job");
            });
        } finally {
            server.stop(0);
        }
    }

    private static void run(TocsinClient client, Callable<String> job) {
        try {
            System.out.println(client.monitors().run("default", "nightly", job));
        } catch (Exception failed) {
            System.out.println(failed.getMessage());
        }
        System.out.println("interrupted after: " + Thread.interrupted());
    }
}
