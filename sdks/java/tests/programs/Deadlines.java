import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import dev.tocsin.client.error.TransportException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.TreeSet;

/** What calls of some milliseconds throw whose server never answers: the JDK ends many of them a little early. */
class Deadlines {
    private static final int CALLS = 500;

    public static void main(String[] arguments) throws Exception {
        TreeSet<String> thrown = new TreeSet<>();
        try (ServerSocket silent = new ServerSocket(0, CALLS, InetAddress.getLoopbackAddress())) {
            String url = "http://127.0.0.1:" + silent.getLocalPort();
            for (int call = 0; call < CALLS; call++) {
                Duration timeout = Duration.ofNanos(2_000_000 + call * 2_000);
                try (TocsinClient client = Tocsin.client(url).timeout(timeout).retries(0).build()) {
                    client.timers().get("default", "t");
                } catch (TransportException lost) {
                    thrown.add(lost.getClass().getSimpleName());
                }
            }
        }
        System.out.println(String.join(" ", thrown));
    }
}
