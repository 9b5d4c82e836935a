package dev.tocsin.client;

import dev.tocsin.client.error.ApiException;
import dev.tocsin.client.error.DeadlineExceededException;
import dev.tocsin.client.error.TocsinException;
import dev.tocsin.client.error.TransportException;
import java.net.URI;
import java.net.http.HttpRequest;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.DoubleSupplier;

/** What all calls of a client share: tries, deadlines, the retry budget, and which node is asked. */
final class Session {
    /** Longer than the server's own 10 s, so that its 503 arrives, which means more than a timeout. */
    private static final double TRY_TIMEOUT_S = 15.0;

    private static final double READ_TIMEOUT_S = 2.0;
    static final DoubleSupplier RANDOM = () -> ThreadLocalRandom.current().nextDouble();

    final String url;
    final Retries budget = new Retries();
    /** Null without owner routing. */
    final Router router;

    private final String key;
    private final Consumer<Map<String, String>> onRequest;
    private final Transport transport;

    Session(String url, String key, boolean toOwners, Consumer<Map<String, String>> onRequest, Transport transport) {
        if (!url.startsWith("http://") && !url.startsWith("https://")) {
            throw new IllegalArgumentException("url: '" + url
                    + "' is not an http or https URL, such as http://127.0.0.1:8080");
        }
        this.url = withoutSlash(url);
        this.key = key;
        this.router = toOwners ? new Router(this.url, Session::monotonic, RANDOM) : null;
        this.onRequest = onRequest;
        this.transport = transport;
    }

    static String withoutSlash(String url) {
        return url.endsWith("/") ? withoutSlash(url.substring(0, url.length() - 1)) : url;
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

    /** The same; `maybeDone` becomes true if a try that failed may have been executed. */
    CompletableFuture<Reply> perform(Run run, Call call, Options options, AtomicBoolean maybeDone) {
        Tries tries = new Tries(run, call, options, maybeDone);
        if (router == null || call.place() == null) {
            tries.send(url);
        } else {
            router.baseFor(call.place(), each -> read(run, each)).whenComplete(Run.guarded(tries.result, tries::send));
        }
        return tries.result;
    }

    /** The URL of the owner, by a map that is read if need be. */
    CompletableFuture<String> ownerOf(Run run, Place place) {
        return router == null ? CompletableFuture.completedFuture("") : router.baseFor(place, each -> read(run, each));
    }

    /** One short try of a read whose failure changes no call's result. */
    private CompletableFuture<Reply> read(Run run, Call call) {
        return run.waitingFor(transport.send(request(call, url, 0, 0), READ_TIMEOUT_S));
    }

    /** One call's tries. */
    private final class Tries {
        final CompletableFuture<Reply> result = new CompletableFuture<>();
        private final Run run;
        private final Call call;
        private final Options options;
        private final AtomicBoolean maybeDone;
        private final double started = monotonic();
        private final double deadline;
        private int retry;

        Tries(Run run, Call call, Options options, AtomicBoolean maybeDone) {
            this.run = run;
            this.call = call;
            this.options = options;
            this.maybeDone = maybeDone;
            this.deadline = started + options.timeoutSeconds();
        }

        void send(String base) {
            double now = monotonic();
            HttpRequest request = request(call, base, retry, now - started);
            double timeout = Math.min(TRY_TIMEOUT_S, Math.max(deadline - now, 0.001));
            run.waitingFor(transport.send(request, timeout)).whenComplete((reply, failure) -> {
                Throwable error = failure == null ? null : Run.unwrapped(failure);
                if (error == null || error instanceof TransportException) {
                    Run.<Reply>guarded(result, each -> answered(base, each, (TransportException) error)).accept(reply, null);
                } else {
                    result.completeExceptionally(error);
                }
            });
        }

        private void answered(String base, Reply reply, TransportException lost) {
            if (router != null && call.place() != null) {
                router.observe(base, reply);
            }
            if (reply != null && reply.succeeded()) {
                budget.earn();
                result.complete(reply);
                return;
            }
            TocsinException error = reply == null ? lost : reply.error();
            if (Retries.maybeDone(error)) {
                maybeDone.set(true);
            }
            OptionalDouble pause = pause(error);
            if (lost != null && monotonic() >= deadline) {
                String message = "no answer within the call's " + Values.format(options.timeout()) + ": " + lost.getMessage();
                result.completeExceptionally(new DeadlineExceededException(message, maybeDone.get(), lost));
            } else if (pause.isEmpty() || !budget.spend()) {
                result.completeExceptionally(error);
            } else {
                retry++;
                run.sleep(pause.getAsDouble()).whenCompleteAsync(Run.guarded(result, awake -> send(url)));
            }
        }

        /** Seconds before the next try; empty: there is none. */
        private OptionalDouble pause(TocsinException error) {
            boolean ends = retry >= options.retries() || !Retries.isRepeated(error);
            if (ends || Retries.maybeDone(error) && !call.safe()) {
                return OptionalDouble.empty();
            }
            Double retryAfter = error instanceof ApiException refused ? refused.retryAfterSeconds() : null;
            return Retries.delay(retry, retryAfter, deadline - monotonic(), RANDOM);
        }
    }

    private HttpRequest request(Call call, String base, int retry, double elapsedSeconds) {
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
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + call.target()));
        headers.forEach(request::setHeader);
        return request.method(call.operation().method, body).build();
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
