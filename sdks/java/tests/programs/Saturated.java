import dev.tocsin.client.AsyncTocsinClient;
import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import dev.tocsin.client.error.TransportException;
import dev.tocsin.client.error.WaitTimeoutException;
import dev.tocsin.client.model.Timer;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;

/** Limits of time of calls whose server never answers, and while all connections are in use. */
class Saturated {
    private static final int CONNECTIONS = 64;

    public static void main(String[] arguments) throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 2 * CONNECTIONS, InetAddress.getLoopbackAddress());
                TocsinClient client = Tocsin.client("http://127.0.0.1:" + silent.getLocalPort()).timeout(Duration.ofSeconds(10))
                        .retries(0).build()) {
            try {
                client.timers().await("default", "t", Duration.ofMillis(10));
            } catch (WaitTimeoutException late) {
                System.out.println("wait over");
            }
            AsyncTocsinClient async = client.async();
            List<CompletableFuture<Timer>> hanging = new ArrayList<>();
            for (int call = 0; call < CONNECTIONS; call++) {
                hanging.add(async.timers().get("default", "t"));
            }
            try {
                async.withTimeout(Duration.ofMillis(100)).timers().get("default", "t").join();
            } catch (CompletionException failed) {
                System.out.println("may be done: " + ((TransportException) failed.getCause()).maybeDone());
            }
            // Half of its time is over when it gets a connection.
            CompletableFuture.delayedExecutor(1, TimeUnit.SECONDS).execute(() -> hanging.get(0).cancel(true));
            long began = System.nanoTime();
            try {
                client.withTimeout(Duration.ofSeconds(2)).timers().get("default", "t");
            } catch (TransportException lost) {
                boolean inTime = System.nanoTime() - began < Duration.ofMillis(2_800).toNanos();
                System.out.println("in time: " + inTime + ", may be done: " + lost.maybeDone());
            }
            hanging.forEach(each -> each.cancel(true));
        }
    }
}
