package dev.tocsin.client;

import dev.tocsin.client.error.TransportException;
import java.lang.System.Logger;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.DoubleSupplier;
import org.jspecify.annotations.Nullable;

/** What all calls of a client share: connections, the retry budget, and which node is asked. */
final class Session {
    private static final Logger LOG = System.getLogger("dev.tocsin.client");
    private static final double READ_TIMEOUT_S = 2.0;
    static final DoubleSupplier RANDOM = () -> ThreadLocalRandom.current().nextDouble();

    final String url;
    final Retries budget = new Retries();
    /** Null without owner routing. */
    final @Nullable Router router;

    private final @Nullable String key;
    private final @Nullable Consumer<Map<String, String>> onRequest;
    private final @Nullable Consumer<Try> onTry;
    private final Transport transport;

    /** The hooks and the key may be null. */
    Session(
            String url, @Nullable String key, boolean toOwners, @Nullable Consumer<Map<String, String>> onRequest,
            @Nullable Consumer<Try> onTry, Transport transport) {
        this.url = Access.url(url);
        this.key = Access.key(key);
        this.router = toOwners ? new Router(this.url, Session::monotonic, RANDOM) : null;
        this.onRequest = onRequest;
        this.onTry = onTry;
        this.transport = transport;
    }

    /** Seconds of a clock that is never set. */
    static double monotonic() {
        return System.nanoTime() / 1e9;
    }

    void close() {
        transport.close();
    }

    /** Repeats the call until it is answered 2xx; fails with the last try's error otherwise. */
    CompletableFuture<Reply> perform(Run run, Call call, Options options) {
        return perform(run, call, options, new AtomicBoolean());
    }

    /** `maybeDone` becomes true if a try that failed may have been executed. */
    CompletableFuture<Reply> perform(Run run, Call call, Options options, AtomicBoolean maybeDone) {
        if (run.blocks()) {
            return Run.now(() -> performNow(run, call, options, maybeDone));
        }
        Tries tries = new Tries(this, call, options, maybeDone);
        CompletableFuture<Reply> result = new CompletableFuture<>();
        if (router == null || call.place() == null) {
            send(run, tries, url, result);
        } else {
            ownerOf(run, call.place()).whenComplete(Run.guarded(result, base -> send(run, tries, base, result)));
        }
        return result;
    }

    /** In this thread. */
    private Reply performNow(Run run, Call call, Options options, AtomicBoolean maybeDone) throws InterruptedException {
        Tries tries = new Tries(this, call, options, maybeDone);
        String base = router == null || call.place() == null ? url : Run.join(ownerOf(run, call.place()));
        while (true) {
            Reply reply = null;
            TransportException lost = null;
            try {
                reply = transport.sendNow(tries.next(base), tries.timeoutSeconds());
            } catch (TransportException failed) {
                lost = failed;
            }
            double pause = tries.after(reply, lost);
            if (pause == Tries.SUCCEEDED) {
                return reply;
            }
            TimeUnit.NANOSECONDS.sleep((long) Math.ceil(pause * 1e9));
            base = url;
        }
    }

    private void send(Run run, Tries tries, String base, CompletableFuture<Reply> result) {
        run.waitingFor(transport.send(tries.next(base), tries.timeoutSeconds())).whenComplete((reply, failure) -> {
            Throwable error = failure == null ? null : Run.unwrapped(failure);
            if (error != null && !(error instanceof TransportException)) {
                result.completeExceptionally(error);
                return;
            }
            Run.<Reply>guarded(result, each -> {
                double pause = tries.after(each, (TransportException) error);
                if (pause == Tries.SUCCEEDED) {
                    result.complete(each);
                } else {
                    run.sleep(pause).whenCompleteAsync(Run.guarded(result, awake -> send(run, tries, url, result)));
                }
            }).accept(reply, null);
        });
    }

    /** The URL of the owner, by a map that is read if need be. */
    CompletableFuture<String> ownerOf(Run run, Place place) {
        return router == null ? CompletableFuture.completedFuture("") : router.baseFor(place, each -> read(run, each));
    }

    /** One short try of a read whose failure changes no call's result. */
    private CompletableFuture<Reply> read(Run run, Call call) {
        if (run.blocks()) {
            return Run.now(() -> transport.sendNow(request(call, url, 0, 0), READ_TIMEOUT_S));
        }
        return run.waitingFor(transport.send(request(call, url, 0, 0), READ_TIMEOUT_S));
    }

    /** Whether anybody wants to know of tries. */
    boolean reports() {
        return onTry != null || LOG.isLoggable(Logger.Level.DEBUG);
    }

    /** A hook that throws must not fail the call. */
    void report(Try ended) {
        LOG.log(Logger.Level.DEBUG, ended::toString);
        if (onTry != null) {
            try {
                onTry.accept(ended);
            } catch (RuntimeException failed) {
                LOG.log(Logger.Level.WARNING, "onTry failed; the call goes on", failed);
            }
        }
    }

    HttpRequest.Builder request(Call call, String base, int retry, double elapsedSeconds) {
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("accept", "application/json");
        headers.put("user-agent", "tocsin-client-java/" + Version.TEXT);
        headers.putAll(call.headers());
        if (key != null) {
            headers.put("authorization", "Bearer " + key);
        }
        if (retry == 0) {
            headers.putAll(call.firstHeaders());
        }
        HttpRequest.BodyPublisher body = HttpRequest.BodyPublishers.noBody();
        if (call.body() != null) {
            headers.put("content-type", "application/json");
            Json sent = retry == 0 ? call.body() : remaining(call.body(), elapsedSeconds);
            body = HttpRequest.BodyPublishers.ofByteArray(sent.toString().getBytes(StandardCharsets.UTF_8));
        }
        if (onRequest != null) {
            onRequest.accept(headers);
        }
        // Also with a client that prefers HTTP/2: its offer to upgrade loses bodies at some servers.
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + call.target()))
                .version(HttpClient.Version.HTTP_1_1);
        headers.forEach(request::setHeader);
        return request.method(call.operation().method, body);
    }

    /** The body with what is left of its delay, so that a retry means the same instant. A batch's timers, too. */
    static Json remaining(Json body, double elapsedSeconds) {
        if (body.has("timers")) {
            return body.with("timers", Json.array(body.get("timers").asList(), each -> remaining(each, elapsedSeconds)));
        }
        if (!body.has("delay") || !body.get("delay").isString()) {
            return body;
        }
        Duration left = body.read("delay", Values::toDuration).minusNanos((long) (elapsedSeconds * 1e9));
        return body.with("delay", Values.toJson(left.isNegative() ? Duration.ZERO : left));
    }
}
