package dev.tocsin.receiver;

import java.lang.System.Logger;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Verifies callbacks with the namespace's secrets (the current one, and the former one during a rotation) and calls handlers,
 * whatever server received them.
 */
public final class Receiver {
    /** The longest body of a callback. */
    public static final int BODY_BYTES_MAX = 1024 * 1024;

    /** Of each header that a signature concerns: far more than any that is Tocsin's. */
    private static final int HEADER_CHARS_MAX = 4_096;
    private static final List<String> SIGNED = List.of("webhook-id", "webhook-timestamp", "webhook-signature");
    private static final Logger LOG = System.getLogger("dev.tocsin.receiver");

    private final @Nullable Supplier<List<String>> secrets;
    private final Duration tolerance;
    private final Clock clock;

    private Receiver(@Nullable Supplier<List<String>> secrets, Duration tolerance, Clock clock) {
        this.secrets = secrets;
        this.tolerance = tolerance;
        this.clock = clock;
    }

    /**
     * A receiver with fixed secrets.
     *
     * @param secrets as {@code tocsin namespaces} printed them; none: every request is refused
     * @return the receiver
     */
    public static Receiver of(String... secrets) {
        List<String> fixed = List.of(secrets);
        return of(() -> fixed);
    }

    /**
     * A receiver that asks for the secrets at each request.
     *
     * @param secrets returns one or several
     * @return the receiver
     */
    public static Receiver of(Supplier<List<String>> secrets) {
        return new Receiver(Objects.requireNonNull(secrets), Duration.ofSeconds(300), Clock.systemUTC());
    }

    /**
     * A receiver that verifies nothing: anybody who reaches it can call it.
     *
     * @return the receiver
     */
    public static Receiver unsigned() {
        return new Receiver(null, Duration.ZERO, Clock.systemUTC());
    }

    /**
     * This receiver with another tolerance; 300 s by default.
     *
     * @param tolerance how much the sender's clock may differ
     * @return a copy
     */
    public Receiver tolerance(Duration tolerance) {
        return new Receiver(secrets, tolerance, clock);
    }

    /**
     * This receiver with another clock, for tests.
     *
     * @param clock instead of the system's
     * @return a copy
     */
    public Receiver clock(Clock clock) {
        return new Receiver(secrets, tolerance, clock);
    }

    /**
     * The response to a request. An exception or error of the handler is logged, and answered 500: the server calls again. The callbacks
     * of a batch are handled one after another, and answered together.
     *
     * @param headers of the request
     * @param body its raw bytes, before a parser has read them
     * @param handler gets the firing, if the request is verified
     * @return the response to send
     */
    public Answer handle(Map<String, String> headers, byte[] body, Handler handler) {
        if (body.length > BODY_BYTES_MAX) {
            return Answer.refused(413, "the body is too large for a callback");
        }
        Map<String, String> named = new HashMap<>();
        headers.forEach((name, value) -> named.put(name.toLowerCase(Locale.ROOT), value));
        for (String name : SIGNED) {
            if (named.getOrDefault(name, "").length() > HEADER_CHARS_MAX) {
                return Answer.refused(503, "the request's header " + name + " is too long");
            }
        }
        Answer refusal = secrets == null ? null : refusal(named, body);
        return refusal == null ? handled(named, body, handler) : refusal;
    }

    private static Answer handled(Map<String, String> headers, byte[] body, Handler handler) {
        Optional<Answer> answer = Batch.is(headers)
                ? Batch.read(headers, body).map(batch -> answerAll(batch, handler))
                : Firing.read(headers, body).map(firing -> answer(firing, handler));
        return answer.orElseGet(() -> foreign(headers.get("webhook-id")));
    }

    private static Answer answerAll(Batch.Read batch, Handler handler) {
        List<String> results = new ArrayList<>();
        batch.firings().forEach(each -> results.add(Batch.result(each.webhookId(), answer(each, handler))));
        batch.unreadable().forEach(each -> results.add(Batch.result(each, foreign(each))));
        return Batch.response(results);
    }

    private static Answer foreign(@Nullable String webhookId) {
        LOG.log(Logger.Level.WARNING, "callback " + webhookId
                + " refused: its body or headers are not those of the timer that its webhook-id names");
        return Answer.refused(503, "the request is not the callback that its webhook-id names");
    }

    private static Answer answer(Firing firing, Handler handler) {
        try {
            Answer answer = handler.handle(firing);
            return Objects.requireNonNull(answer,
                    "the handler returned null; return done(), rescheduleAt(), retry() or fail()");
        } catch (VirtualMachineError failed) {
            if (failed instanceof StackOverflowError) {
                return crashed(firing, failed); // the handler's own
            }
            throw failed;
        } catch (Throwable failed) { // of a batch, the others are answered in any case
            if (failed instanceof InterruptedException) {
                Thread.currentThread().interrupt();
            }
            return crashed(firing, failed);
        }
    }

    private static Answer crashed(Firing firing, Throwable failed) {
        LOG.log(Logger.Level.ERROR, "handler failed for " + firing.webhookId() + ", timer " + firing.timerId(), failed);
        return Answer.refused(500, "the handler failed; the receiver's log has the reason");
    }

    /** Why the request is not verified. What a mended configuration would accept is 503: after a 401 the timer fails. */
    private @Nullable Answer refusal(Map<String, String> headers, byte[] body) {
        String webhookId = headers.get("webhook-id");
        String timestamp = headers.get("webhook-timestamp");
        String signature = headers.get("webhook-signature");
        if (webhookId == null || timestamp == null || signature == null) {
            return Answer.refused(401, "the request is not signed");
        }
        if (!timestamp.matches(Signatures.TIMESTAMP)) {
            return Answer.refused(503, "the request's timestamp is not a number of seconds");
        }
        long seconds = Long.parseLong(timestamp);
        if (Math.abs(clock.millis() / 1e3 - seconds) > tolerance.toNanos() / 1e9) {
            LOG.log(Logger.Level.WARNING, "callback " + webhookId + " refused: timestamp is outside the tolerance");
            return Answer.refused(503, "the request's timestamp is outside the tolerance; check both clocks");
        }
        Optional<List<String>> signatures = Signatures.in(signature);
        if (signatures.isEmpty()) {
            LOG.log(Logger.Level.WARNING, "callback " + webhookId + " refused: it has too many signatures");
            return Answer.refused(503, "the request has too many signatures");
        }
        List<byte[]> keys;
        try {
            keys = secrets.get().stream().map(Signatures::keyOf).toList();
        } catch (RuntimeException failed) {
            LOG.log(Logger.Level.ERROR, "signing secrets can't be read; callbacks are refused until they can", failed);
            return Answer.refused(503, "the receiver's secrets can't be read; its log has the reason");
        }
        if (keys.isEmpty()) {
            LOG.log(Logger.Level.ERROR, "receiver has no signing secret; give one, or use Receiver.unsigned()");
            return Answer.refused(503, "the receiver has no secret");
        }
        if (!Signatures.isSigned(keys, webhookId, seconds, body, signatures.get())) {
            LOG.log(Logger.Level.WARNING, "callback " + webhookId + " refused: wrong signature");
            return Answer.refused(503, "no signature is of this receiver's secrets");
        }
        return null;
    }
}
