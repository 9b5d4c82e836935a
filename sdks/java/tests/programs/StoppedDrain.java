import com.sun.net.httpserver.HttpServer;
import dev.tocsin.client.Drain;
import dev.tocsin.client.Outbox;
import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import dev.tocsin.client.model.CreateTimer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

/** A drain that is stopped while it waits for an answer: whether its row, in the database of the first argument, is due. */
class StoppedDrain {
    public static void main(String[] arguments) throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        CountDownLatch stopped = new CountDownLatch(1);
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            asked.countDown();
            try {
                stopped.await();
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
            exchange.close();
        });
        server.start();
        String url = "http://127.0.0.1:" + server.getAddress().getPort();
        try (TocsinClient client = Tocsin.client(url).build(); Connection connection = DriverManager.getConnection(arguments[0])) {
            Drain drain = new Drain(client, () -> DriverManager.getConnection(arguments[0]));
            drain.createTable();
            connection.setAutoCommit(false);
            Outbox.in(connection).create(CreateTimer.of("n", "t", "http://127.0.0.1:1/").delay(Duration.ofHours(1)));
            connection.commit();
            Thread draining = drain.start(Duration.ofHours(1));
            asked.await();
            draining.interrupt();
            draining.join();
            try (ResultSet found = connection.createStatement().executeQuery("SELECT due_at FROM tocsin_outbox")) {
                found.next();
                System.out.println("due: " + (found.getLong(1) <= System.currentTimeMillis() * 1_000));
            }
        } finally {
            stopped.countDown();
            server.stop(0);
        }
    }
}
