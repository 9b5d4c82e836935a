package dev.tocsin.client;

import dev.tocsin.client.error.ApiException;
import dev.tocsin.client.error.ConflictException;
import dev.tocsin.client.error.DeadlineExceededException;
import dev.tocsin.client.error.NotFoundException;
import dev.tocsin.client.error.WaitTimeoutException;
import dev.tocsin.client.model.CreateTimer;
import dev.tocsin.client.model.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The session with the limits of one view of the client, and calls that are more than one request.
 *
 * @param blocking whether calls are done by the calling thread, so that futures are completed when they are returned
 */
record Steps(Session session, Options options, boolean blocking) {
    /** Declares that no earlier try can have been executed: the server needs no look-up. */
    static final Map<String, String> FIRST_TRY = Map.of("tocsin-first-try", "1");

    private static final double WAIT_POLL_FIRST_S = 0.1;
    private static final double WAIT_POLL_S_MAX = 2.0;
    /** What a request gets at the least, also the one at the end of a wait. */
    private static final double WAIT_POLL_TIMEOUT_S_MIN = 1.0;
    /** Before the instant: what is awaited can be canceled or changed meanwhile, and the server's clock can differ. */
    private static final double WAIT_SLEEP_S_MAX = 30.0;
    /** The same if the server's clock can be moved, which makes an instant come at once. */
    private static final double WAIT_SLEEP_MOVABLE_S_MAX = 1.0;

    /** These steps for calls that block. */
    Steps inCallingThread() {
        return new Steps(session, options, true);
    }

    /** One request and its answer. */
    <T> CompletableFuture<T> ask(Call call, Function<Json, T> read) {
        return perform(call, reply -> reply.read(read));
    }

    /** One request that is answered by nothing. */
    CompletableFuture<Void> order(Call call) {
        return perform(call, Reply::readNothing);
    }

    <T> CompletableFuture<T> perform(Call call, Function<Reply, T> read) {
        return start(run -> session.perform(run, call, options).thenApply(read));
    }

    <T> CompletableFuture<T> start(Function<Run, CompletableFuture<T>> steps) {
        return blocking ? Run.inThisThread(steps) : Run.start(steps);
    }

    /** Creates it once, however often its answer is lost. */
    CompletableFuture<Timer> create(CreateTimer timer) {
        boolean automatic = !timer.idempotencyKey().isPresent();
        CreateTimer keyed = automatic ? timer.idempotencyKey(UUID.randomUUID().toString()) : timer;
        Place place = new Place(timer.namespace(), timer.id());
        Call call = Call.of(Operation.CREATE_TIMER, keyed.toJson()).place(place);
        Call sent = automatic ? call.firstHeaders(FIRST_TRY) : call;
        return ask(sent, found -> {
            Timer created = Timer.fromJson(found);
            if (session.router != null) {
                session.router.check(place, created.shardId());
            }
            return created;
        });
    }

    /** Deletes; where an earlier try's answer was lost, a refusal can mean that this try succeeded. */
    CompletableFuture<Void> delete(Call call, Call get, Predicate<Json> isGone) {
        return settled(call, Reply::readNothing, get, (got, refused) -> {
            if (got.isPresent() && !got.get().read(isGone::test)) {
                throw refused;
            }
            return null;
        });
    }

    /**
     * Updates or puts; where an earlier try's answer was lost, a refusal can mean that it succeeded: the object has finished
     * since, or it has no longer the version that is expected. Then what is stored has the fields that were sent, and is of
     * the next version.
     */
    <T> CompletableFuture<T> update(Call call, Call get, Function<Json, T> read) {
        return settled(call, reply -> reply.read(read), get, (got, refused) -> {
            if (got.isEmpty() || !got.get().read(found -> Updates.isWritten(found, call.body(), refused))) {
                throw refused;
            }
            return got.get().read(read);
        });
    }

    /** What a refusal after a lost answer means: by the object, which may be gone. */
    private interface Settle<T> {
        T settle(Optional<Reply> got, ApiException refused);
    }

    /** After a try that may have been executed, 404 and 409 are settled by reading the object. */
    private <T> CompletableFuture<T> settled(Call call, Function<Reply, T> read, Call get, Settle<T> settle) {
        AtomicBoolean maybeDone = new AtomicBoolean();
        return start(run -> session.perform(run, call, options, maybeDone).thenApply(read).exceptionallyCompose(failure -> {
            Throwable error = Run.unwrapped(failure);
            boolean refused = error instanceof NotFoundException || error instanceof ConflictException;
            if (!maybeDone.get() || !refused) {
                return CompletableFuture.failedFuture(error);
            }
            return session.perform(run, get, options).thenApply(Optional::of)
                    .exceptionally(missing -> {
                        if (Run.unwrapped(missing) instanceof NotFoundException) {
                            return Optional.empty();
                        }
                        throw new CompletionException(Run.unwrapped(missing));
                    })
                    .thenApply(got -> settle.settle(got, (ApiException) error));
        }));
    }

    /** Asks again and again until the object has finished; null as timeout: however long it takes. */
    <T> CompletableFuture<T> await(
            Call get, Function<Json, T> read, Predicate<T> isFinished, Function<T, Instant> next, @Nullable Duration timeout,
                    String what) {
        return start(run -> {
            Waiting<T> waiting = new Waiting<>(run, get, read, isFinished, next, timeout, what);
            waiting.poll();
            return waiting.result;
        });
    }

    private final class Waiting<T> {
        final CompletableFuture<T> result = new CompletableFuture<>();
        private final Run run;
        private final Call get;
        private final Function<Json, T> read;
        private final Predicate<T> isFinished;
        private final Function<T, Instant> next;
        private final double end;
        private final String what;
        private double pause = WAIT_POLL_FIRST_S;

        Waiting(
                Run run, Call get, Function<Json, T> read, Predicate<T> isFinished, Function<T, Instant> next,
                        @Nullable Duration timeout,
                String what) {
            this.run = run;
            this.get = get;
            this.read = read;
            this.isFinished = isFinished;
            this.next = next;
            this.end = timeout == null ? Double.POSITIVE_INFINITY : Session.monotonic() + timeout.toNanos() / 1e9;
            this.what = what;
        }

        void poll() {
            double most = Math.max(end - Session.monotonic(), WAIT_POLL_TIMEOUT_S_MIN);
            Options limited = most >= options.timeoutSeconds()
                    ? options : new Options(Duration.ofNanos((long) (most * 1e9)), options.retries());
            session.perform(run, get, limited).handle((reply, failure) -> {
                if (failure == null) {
                    return reply;
                }
                Throwable error = Run.unwrapped(failure);
                if (error instanceof DeadlineExceededException && Session.monotonic() >= end) {
                    error = late();
                }
                throw new CompletionException(error);
            }).whenComplete(Run.guarded(result, reply -> {
                T found = reply.read(read);
                if (isFinished.test(found)) {
                    result.complete(found);
                } else {
                    double left = end - Session.monotonic();
                    if (left <= 0) {
                        throw late();
                    }
                    double seconds = Math.min(seconds(next.apply(found), reply), left);
                    run.sleep(seconds).whenCompleteAsync(Run.guarded(result, awake -> poll()), run.executor());
                }
            }));
        }

        private WaitTimeoutException late() {
            return new WaitTimeoutException(what + " has not finished in time");
        }

        /** Until the instant, if it is ahead, then ever longer. */
        private double seconds(Instant instant, Reply reply) {
            // Only `tocsin dev` sends it, whose clock can be moved.
            String shown = reply.headers().get("tocsin-now");
            Instant now = shown == null ? Instant.now() : Values.parseInstant(shown);
            double ahead = (instant.toEpochMilli() - now.toEpochMilli()) / 1e3;
            if (ahead > 0) {
                pause = WAIT_POLL_FIRST_S;
                return Math.min(ahead, shown == null ? WAIT_SLEEP_S_MAX : WAIT_SLEEP_MOVABLE_S_MAX);
            }
            double present = pause;
            pause = Math.min(pause * 2, WAIT_POLL_S_MAX);
            return present;
        }
    }
}
