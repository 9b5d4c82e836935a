import dev.tocsin.client.ClientBuilder;
import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import dev.tocsin.client.error.TocsinException;
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.http.HttpClient;
import java.util.List;

/** Lists namespaces, blocking and not, and then keys, of the server of the first argument; the second is the port of its proxy. */
class Transports {
    public static void main(String[] arguments) {
        ClientBuilder builder = Tocsin.client(arguments[0]).retries(0).onRequest(headers -> headers.put("x-hook", "1"));
        if (arguments.length > 1) {
            InetSocketAddress proxy = new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[1]));
            builder.httpClient(HttpClient.newBuilder().version(HttpClient.Version.HTTP_2)
                    .proxy(ProxySelector.of(proxy)).build());
        }
        try (TocsinClient client = builder.build()) {
            System.out.println(shown(() -> client.namespaces().list().get(0).name()));
            System.out.println(shown(() -> client.async().namespaces().list().join().get(0).name()));
            System.out.println(shown(() -> client.keys().list()));
        }
    }

    private static Object shown(java.util.function.Supplier<Object> call) {
        try {
            return call.get();
        } catch (TocsinException | java.util.concurrent.CompletionException failed) {
            Throwable error = failed instanceof TocsinException ? failed : failed.getCause();
            return error.getClass().getSimpleName();
        }
    }
}
