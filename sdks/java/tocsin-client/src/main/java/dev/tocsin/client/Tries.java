package dev.tocsin.client;

import dev.tocsin.client.error.ApiException;
import dev.tocsin.client.error.DeadlineExceededException;
import dev.tocsin.client.error.TocsinException;
import dev.tocsin.client.error.TransportException;
import java.net.http.HttpRequest;
import java.util.OptionalDouble;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** The tries of one call: the next request, and what its answer means. It sends nothing itself. */
final class Tries {
    /** Instead of a pause: the call has succeeded. */
    static final double SUCCEEDED = -1;
    /** Longer than the server's own 10 s, so that its 503 arrives, which means more than a timeout. */
    private static final double TRY_TIMEOUT_S = 15.0;

    private final Session session;
    private final Call call;
    private final Options options;
    private final AtomicBoolean maybeDone;
    private final double started = Session.monotonic();
    private final double deadline;
    private String base;
    private double tryStarted;
    private int retry;
    private int paid;

    /** `maybeDone` becomes true if a try that failed may have been executed. */
    Tries(Session session, Call call, Options options, AtomicBoolean maybeDone) {
        this.session = session;
        this.call = call;
        this.options = options;
        this.maybeDone = maybeDone;
        this.deadline = started + options.timeoutSeconds();
    }

    /** The next try's request to this node. */
    HttpRequest.Builder next(String base) {
        this.base = base;
        tryStarted = Session.monotonic();
        return session.request(call, base, retry, tryStarted - started);
    }

    /** How long the try may take. */
    double timeoutSeconds() {
        return Math.min(TRY_TIMEOUT_S, Math.max(deadline - tryStarted, 0.001));
    }

    /** Seconds before the next try, or SUCCEEDED. Throws the call's error. One of reply and lost is null. */
    double after(@Nullable Reply reply, @Nullable TransportException lost) {
        if (session.router != null && call.place() != null) {
            session.router.observe(base, reply);
        }
        if (reply != null && reply.succeeded()) {
            session.budget.succeeded(paid);
            report(reply, null, null);
            return SUCCEEDED;
        }
        TocsinException error = reply == null ? lost : reply.error();
        if (Retries.maybeDone(error)) {
            maybeDone.set(true);
        }
        boolean late = lost != null && Session.monotonic() >= deadline;
        OptionalDouble pause = late ? OptionalDouble.empty() : pause(error);
        report(reply, error, pause.isPresent() ? pause.getAsDouble() : null);
        if (late) {
            String message = "no answer within the call's " + Values.format(options.timeout()) + ": " + lost.getMessage();
            throw new DeadlineExceededException(message, maybeDone.get(), lost);
        }
        if (pause.isEmpty()) {
            throw error;
        }
        retry++;
        return pause.getAsDouble();
    }

    /** Empty: there is no next try. */
    private OptionalDouble pause(TocsinException error) {
        if (retry >= options.retries() || !Retries.isRepeated(error, call.safe())) {
            return OptionalDouble.empty();
        }
        Double retryAfter = error instanceof ApiException refused ? refused.retryAfterSeconds() : null;
        OptionalDouble pause = Retries.delay(retry, retryAfter, deadline - Session.monotonic(), Session.RANDOM);
        if (pause.isPresent() && !Retries.isNeverExecuted(error)) {
            if (!session.budget.spend()) {
                return OptionalDouble.empty();
            }
            paid++;
        }
        return pause;
    }

    private void report(@Nullable Reply reply, @Nullable TocsinException error, @Nullable Double pauseSeconds) {
        if (session.reports()) {
            String code = error instanceof ApiException refused && !refused.code().isEmpty() ? refused.code() : null;
            session.report(new Try(
                    call.operation().id, retry + 1, reply == null ? null : reply.status(), code,
                    reply == null ? error.getMessage() : null, Session.monotonic() - tryStarted, pauseSeconds));
        }
    }
}
