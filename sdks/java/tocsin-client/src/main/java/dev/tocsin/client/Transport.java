package dev.tocsin.client;

import dev.tocsin.client.error.TransportException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.channels.UnresolvedAddressException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;

/** Sends requests with the JDK's client: HTTP/1.1, since its offer of HTTP/2 loses bodies at some servers. */
final class Transport {
    static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(2);
    private static final int CONNECTIONS_PER_HOST = 64;
    /** Below the 75 s after which the server closes idle connections. */
    private static final long IDLE_NS_MAX = Duration.ofSeconds(60).toNanos();

    private final SSLContext sslContext;
    private final Map<String, Host> hosts = new HashMap<>();
    private HttpClient client;
    private long usedAt;
    private boolean closed;

    Transport(SSLContext sslContext) {
        this.sslContext = sslContext;
    }

    /** One request. The timeout covers everything from waiting for a connection to the last byte. */
    CompletableFuture<Reply> send(HttpRequest request, double timeoutSeconds) {
        CompletableFuture<Reply> reply = new CompletableFuture<>();
        reply.orTimeout((long) Math.ceil(timeoutSeconds * 1e6), TimeUnit.MICROSECONDS);
        CompletableFuture<Reply> result = new CompletableFuture<>();
        reply.whenComplete((done, error) -> {
            if (error == null) {
                result.complete(done);
            } else {
                result.completeExceptionally(failed(request, Run.unwrapped(error)));
            }
        });
        result.whenComplete((done, error) -> {
            if (result.isCancelled()) {
                reply.cancel(true);
            }
        });
        Host host = host(request.uri());
        host.enter(reply, () -> exchange(request, reply, host));
        return result;
    }

    private void exchange(HttpRequest request, CompletableFuture<Reply> reply, Host host) {
        CompletableFuture<HttpResponse<byte[]>> exchange;
        try {
            exchange = client().sendAsync(request, HttpResponse.BodyHandlers.ofByteArray());
        } catch (RuntimeException refused) {
            host.leave();
            throw refused;
        }
        exchange.whenComplete((response, error) -> {
            host.leave();
            if (error == null) {
                reply.complete(replyOf(response));
            } else {
                reply.completeExceptionally(Run.unwrapped(error));
            }
        });
        reply.whenComplete((done, error) -> exchange.cancel(true));
    }

    private static Reply replyOf(HttpResponse<byte[]> response) {
        Map<String, String> headers = new HashMap<>();
        response.headers().map().forEach((name, values) -> headers.put(name.toLowerCase(java.util.Locale.ROOT),
                values.get(0)));
        return new Reply(response.statusCode(), headers, response.body());
    }

    private static RuntimeException failed(HttpRequest request, Throwable error) {
        if (error instanceof java.util.concurrent.TimeoutException) {
            return new TransportException(request.method() + " " + request.uri() + ": no answer in time", true, error);
        }
        if (error instanceof IOException) {
            boolean notSent = error instanceof ConnectException || error instanceof HttpConnectTimeoutException
                    || error.getCause() instanceof UnresolvedAddressException;
            String reason = error.getMessage() == null ? error.getClass().getSimpleName() : error.getMessage();
            return new TransportException(request.method() + " " + request.uri() + ": " + reason, !notSent, error);
        }
        return error instanceof RuntimeException unchecked ? unchecked : new IllegalStateException(error);
    }

    private synchronized HttpClient client() {
        long now = System.nanoTime();
        if (closed) {
            throw new IllegalStateException("the client is closed; make another");
        }
        if (client == null || now - usedAt > IDLE_NS_MAX) {
            HttpClient.Builder builder = HttpClient.newBuilder()
                    .version(HttpClient.Version.HTTP_1_1)
                    .followRedirects(HttpClient.Redirect.NEVER)
                    .connectTimeout(CONNECT_TIMEOUT);
            if (sslContext != null) {
                builder.sslContext(sslContext);
            }
            client = builder.build();
        }
        usedAt = now;
        return client;
    }

    private synchronized Host host(URI uri) {
        return hosts.computeIfAbsent(uri.getAuthority(), name -> new Host());
    }

    /** The JDK closes the connections of a client that nobody refers to. */
    synchronized void close() {
        closed = true;
        client = null;
    }

    /** Bounds the connections to a host: who comes later waits. */
    private static final class Host {
        private final Queue<Runnable> waiting = new ArrayDeque<>();
        private int connections;

        void enter(CompletableFuture<Reply> reply, Runnable exchange) {
            Runnable start = () -> {
                if (reply.isDone()) {
                    leave();
                    return;
                }
                try {
                    exchange.run();
                } catch (RuntimeException wrong) {
                    reply.completeExceptionally(wrong);
                }
            };
            synchronized (this) {
                if (connections == CONNECTIONS_PER_HOST) {
                    waiting.add(start);
                    return;
                }
                connections++;
            }
            start.run();
        }

        void leave() {
            Runnable next;
            synchronized (this) {
                next = waiting.poll();
                connections -= next == null ? 1 : 0;
            }
            if (next != null) {
                next.run();
            }
        }
    }
}
