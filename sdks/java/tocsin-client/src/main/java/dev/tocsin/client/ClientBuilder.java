package dev.tocsin.client;

import java.time.Duration;
import java.util.Map;
import java.util.function.Consumer;
import javax.net.ssl.SSLContext;

/** Options of a client. */
public final class ClientBuilder {
    private final String url;
    private String key;
    private Options options = Options.DEFAULT;
    private boolean toOwners;
    private Consumer<Map<String, String>> onRequest;
    private SSLContext sslContext;

    ClientBuilder(String url) {
        this.url = url;
    }

    /**
     * The API key.
     *
     * @param key as the server printed it; null: none
     * @return this
     */
    public ClientBuilder key(String key) {
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
     * How often a call is repeated; 3 by default.
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
     * @param onRequest called for each try
     * @return this
     */
    public ClientBuilder onRequest(Consumer<Map<String, String>> onRequest) {
        this.onRequest = onRequest;
        return this;
    }

    /**
     * For private certificate authorities.
     *
     * @param sslContext instead of the system's
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
     * @throws IllegalArgumentException if the URL is none
     */
    public TocsinClient build() {
        return new TocsinClient(buildAsync());
    }

    /**
     * Makes a client whose calls return futures.
     *
     * @return a client to close
     * @throws IllegalArgumentException if the URL is none
     */
    public AsyncTocsinClient buildAsync() {
        return new AsyncTocsinClient(new Flows(new Session(url, key, toOwners, onRequest, new Transport(sslContext)),
                options));
    }
}
