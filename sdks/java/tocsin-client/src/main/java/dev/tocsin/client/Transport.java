package dev.tocsin.client;

import dev.tocsin.client.error.TransportException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.UnresolvedAddressException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLHandshakeException;
import org.jspecify.annotations.Nullable;

/** Sends requests with the JDK's client, or with the user's. */
final class Transport {
    static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(2);
    private static final int CONNECTIONS_PER_HOST = 64;
    /** Below the 75 s after which the server closes idle connections. */
    private static final long IDLE_NS_MAX = Duration.ofSeconds(60).toNanos();
    /** The JDK counts what is left of a timeout in whole milliseconds, rounded down. */
    private static final Duration EARLY_MAX = Duration.ofMillis(1);
    private static final String NO_CONNECTION = "no connection was free in time";
    private static final CompletableFuture<Void> NOW = CompletableFuture.completedFuture(null);

    /** The user's; null: one is made. */
    private final @Nullable HttpClient given;
    private final @Nullable SSLContext sslContext;
    /** Of the environment; null: it names none, or the user's client has its own. */
    private final @Nullable Proxies proxies;
    private final Map<String, Host> hosts = new HashMap<>();
    private @Nullable HttpClient client;
    private long usedAt;
    private boolean closed;

    /** Both may be null. */
    Transport(@Nullable HttpClient given, @Nullable SSLContext sslContext) {
        this.given = given;
        this.sslContext = sslContext;
        this.proxies = given == null ? Proxies.ofEnvironment(System.getenv()).orElse(null) : null;
    }

    /** One request in this thread. The timeout covers everything from waiting for a connection to the last byte. */
    Reply sendNow(HttpRequest.Builder request, double timeoutSeconds) throws InterruptedException {
        long end = System.nanoTime() + (long) Math.ceil(timeoutSeconds * 1e9);
        HttpRequest sent = built(request);
        HttpClient client = client();
        Host host = host(sent.uri());
        CompletableFuture<Void> turn = host.enter();
        try {
            turn.get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException | InterruptedException | ExecutionException late) {
            if (!turn.cancel(false)) {
                host.leave();
            }
            if (late instanceof InterruptedException interrupted) {
                throw interrupted;
            }
            throw new TransportException(about(sent) + NO_CONNECTION, false, late);
        }
        try {
            Duration left = Duration.ofNanos(Math.max(end - System.nanoTime(), 0)).plus(EARLY_MAX);
            HttpResponse<Body> response = client.send(request.timeout(left).build(), head -> new Body());
            return replyOf(response.statusCode(), response.headers(), response.body().get(end - System.nanoTime()));
        } catch (IOException failed) {
            throw failed(sent, failed);
        } finally {
            host.leave();
        }
    }

    /** The same without a thread. */
    CompletableFuture<Reply> send(HttpRequest.Builder request, double timeoutSeconds) {
        HttpRequest sent = built(request);
        CompletableFuture<Reply> reply = new CompletableFuture<>();
        reply.orTimeout((long) Math.ceil(timeoutSeconds * 1e6), TimeUnit.MICROSECONDS);
        CompletableFuture<Reply> result = new CompletableFuture<>();
        AtomicBoolean entered = new AtomicBoolean();
        reply.whenComplete((done, error) -> {
            if (error == null) {
                result.complete(done);
            } else if (error instanceof TimeoutException && !entered.get()) {
                result.completeExceptionally(new TransportException(about(sent) + NO_CONNECTION, false, error));
            } else {
                result.completeExceptionally(failed(sent, Run.unwrapped(error)));
            }
        });
        result.whenComplete((done, error) -> {
            if (result.isCancelled()) {
                reply.cancel(true);
            }
        });
        Host host = host(sent.uri());
        CompletableFuture<Void> turn = host.enter();
        reply.whenComplete((done, error) -> turn.cancel(false));
        turn.whenComplete((done, canceled) -> {
            if (canceled == null) {
                entered.set(true);
                if (reply.isDone()) { // its time ended at this moment: it counts as not sent
                    host.leave();
                } else {
                    exchange(sent, reply, host);
                }
            }
        });
        return result;
    }

    private HttpRequest built(HttpRequest.Builder request) {
        HttpRequest built = request.build();
        String authorization = proxies == null ? null : proxies.authorization(built.uri());
        return authorization == null ? built : request.setHeader("proxy-authorization", authorization).build();
    }

    private void exchange(HttpRequest request, CompletableFuture<Reply> reply, Host host) {
        CompletableFuture<HttpResponse<byte[]>> exchange;
        try {
            exchange = client().sendAsync(request, HttpResponse.BodyHandlers.ofByteArray());
        } catch (RuntimeException refused) {
            host.leave();
            reply.completeExceptionally(refused);
            return;
        }
        exchange.whenComplete((response, error) -> {
            host.leave();
            if (error == null) {
                reply.complete(replyOf(response.statusCode(), response.headers(), response.body()));
            } else {
                reply.completeExceptionally(Run.unwrapped(error));
            }
        });
        reply.whenComplete((done, error) -> exchange.cancel(true));
    }

    private static Reply replyOf(int status, HttpHeaders received, byte[] body) {
        Map<String, String> headers = new HashMap<>();
        received.map().forEach((name, values) -> headers.put(name.toLowerCase(Locale.ROOT), values.get(0)));
        return new Reply(status, headers, body);
    }

    private static String about(HttpRequest request) {
        return request.method() + " " + request.uri() + ": ";
    }

    private static RuntimeException failed(HttpRequest request, Throwable error) {
        boolean connecting = error instanceof HttpConnectTimeoutException;
        if (error instanceof TimeoutException || error instanceof HttpTimeoutException && !connecting) {
            return new TransportException(about(request) + "no answer in time", true, error);
        }
        if (error instanceof IOException) {
            boolean notSent = connecting || error instanceof ConnectException || error instanceof SSLHandshakeException
                    || error.getCause() instanceof UnresolvedAddressException;
            String reason = error.getMessage() == null ? error.getClass().getSimpleName() : error.getMessage();
            return new TransportException(about(request) + reason, !notSent, error);
        }
        return error instanceof RuntimeException unchecked ? unchecked : new IllegalStateException(error);
    }

    private synchronized HttpClient client() {
        long now = System.nanoTime();
        if (closed) {
            throw new IllegalStateException("the client is closed; make another");
        }
        if (given != null) {
            return given;
        }
        if (client == null || now - usedAt > IDLE_NS_MAX) {
            HttpClient.Builder builder = HttpClient.newBuilder()
                    .version(HttpClient.Version.HTTP_1_1)
                    .followRedirects(HttpClient.Redirect.NEVER)
                    .connectTimeout(CONNECT_TIMEOUT);
            if (sslContext != null) {
                builder.sslContext(sslContext);
            }
            if (proxies != null) {
                builder.proxy(proxies);
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

    /** A body that arrives after its headers: the JDK's own timeout ends with these. */
    private static final class Body implements HttpResponse.BodySubscriber<Body> {
        private final HttpResponse.BodySubscriber<byte[]> bytes = HttpResponse.BodySubscribers.ofByteArray();
        private volatile Flow.Subscription subscription;

        byte[] get(long leftNs) throws InterruptedException, IOException {
            try {
                return bytes.getBody().toCompletableFuture().get(leftNs, TimeUnit.NANOSECONDS);
            } catch (ExecutionException failed) {
                throw failed.getCause() instanceof IOException known ? known : new IOException(failed.getCause());
            } catch (TimeoutException late) {
                cancel();
                throw new HttpTimeoutException("the body did not arrive in time");
            } catch (InterruptedException interrupted) {
                cancel();
                throw interrupted;
            }
        }

        /** Closes the connection. */
        private void cancel() {
            Flow.Subscription begun = subscription;
            if (begun != null) {
                begun.cancel();
            }
        }

        @Override
        public CompletionStage<Body> getBody() {
            return CompletableFuture.completedStage(this);
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            this.subscription = subscription;
            bytes.onSubscribe(subscription);
        }

        @Override
        public void onNext(List<ByteBuffer> part) {
            bytes.onNext(part);
        }

        @Override
        public void onError(Throwable error) {
            bytes.onError(error);
        }

        @Override
        public void onComplete() {
            bytes.onComplete();
        }
    }

    /** Bounds the connections to a host: who comes later waits. */
    private static final class Host {
        private final Queue<CompletableFuture<Void>> waiting = new ArrayDeque<>();
        private int connections;

        /** Completed when there is a connection; a canceled turn needs no `leave`. */
        synchronized CompletableFuture<Void> enter() {
            if (connections < CONNECTIONS_PER_HOST) {
                connections++;
                return NOW;
            }
            CompletableFuture<Void> turn = new CompletableFuture<>();
            waiting.add(turn);
            return turn;
        }

        void leave() {
            CompletableFuture<Void> next;
            do {
                synchronized (this) {
                    next = waiting.poll();
                    connections -= next == null ? 1 : 0;
                }
            } while (next != null && !next.complete(null));
        }
    }
}
