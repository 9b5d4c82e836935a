package dev.tocsin.client;

import dev.tocsin.client.error.InvalidArgumentException;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.Map;
import java.util.function.Consumer;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/** Options of a client. */
public final class ClientBuilder {
    private final String url;
    private @Nullable String key;
    private Options options = Options.DEFAULT;
    private boolean toOwners;
    private @Nullable Consumer<Map<String, String>> onRequest;
    private @Nullable Consumer<Try> onTry;
    private @Nullable HttpClient httpClient;
    private @Nullable SSLContext sslContext;

    ClientBuilder(String url) {
        this.url = url;
    }

    /**
     * The API key.
     *
     * @param key as the server printed it; null: none
     * @return this
     */
    public ClientBuilder key(@Nullable String key) {
        this.key = key;
        return this;
    }

    /**
     * How long a call may take with all its retries; 30 s by default.
     *
     * @param timeout greater than zero
     * @return this
     */
    public ClientBuilder timeout(Duration timeout) {
        options = new Options(timeout, options.retries());
        return this;
    }

    /**
     * How often a call is repeated at most; by default the time alone limits it.
     *
     * @param retries 0 means none
     * @return this
     */
    public ClientBuilder retries(int retries) {
        options = new Options(options.timeout(), retries);
        return this;
    }

    /**
     * Sends writes to the nodes that store them, if the client can reach the nodes themselves.
     *
     * @return this
     */
    public ClientBuilder routeToOwners() {
        toOwners = true;
        return this;
    }

    /**
     * A function that gets each request's headers and may add to them, such as {@code traceparent}.
     *
     * @param onRequest called before each request: by the thread that makes the call if it blocks. Of a call that returns a
     *     future only the first request is made by that thread, and none of a batcher's
     * @return this
     */
    public ClientBuilder onRequest(Consumer<Map<String, String>> onRequest) {
        this.onRequest = onRequest;
        return this;
    }

    /**
     * A function that gets each try when it has ended, also a successful one: for metrics and logs. What it throws is logged
     * and ignored. The same is logged at debug level by the logger {@code dev.tocsin.client}.
     *
     * @param onTry called after each try; calls wait for it
     * @return this
     */
    public ClientBuilder onTry(Consumer<Try> onTry) {
        this.onTry = onTry;
        return this;
    }

    /**
     * An HTTP client with your own proxy, executor, TLS or connect timeout. Requests are HTTP/1.1 also if it prefers HTTP/2. It
     * is not closed with this client. With an authenticator, Java 17 drops the header that carries the API key.
     *
     * @param httpClient instead of one that obeys {@code HTTP_PROXY}, {@code HTTPS_PROXY} and {@code NO_PROXY}; it should
     *     not follow redirects
     * @return this
     */
    public ClientBuilder httpClient(HttpClient httpClient) {
        this.httpClient = httpClient;
        return this;
    }

    /**
     * For private certificate authorities.
     *
     * @param sslContext instead of the system's; give it to your own {@code httpClient} yourself
     * @return this
     */
    public ClientBuilder sslContext(SSLContext sslContext) {
        this.sslContext = sslContext;
        return this;
    }

    /**
     * Makes a client whose calls block; its {@code async} has the same calls as futures.
     *
     * @return a client to close
     * @throws InvalidArgumentException if the URL or the key is malformed
     */
    public TocsinClient build() {
        return new TocsinClient(buildAsync());
    }

    /**
     * Makes a client whose calls return futures.
     *
     * @return a client to close
     * @throws InvalidArgumentException if the URL or the key is malformed
     */
    public AsyncTocsinClient buildAsync() {
        if (httpClient != null && sslContext != null) {
            throw new InvalidArgumentException("sslContext: is not used beside httpClient; give it to the HttpClient");
        }
        Transport transport = new Transport(httpClient, sslContext);
        return new AsyncTocsinClient(
                new Steps(new Session(url, key, toOwners, onRequest, onTry, transport), options, false));
    }
}
