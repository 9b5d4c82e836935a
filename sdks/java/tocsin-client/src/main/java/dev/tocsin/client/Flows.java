package dev.tocsin.client;

import dev.tocsin.client.error.ConflictException;
import dev.tocsin.client.error.NotFoundException;
import dev.tocsin.client.error.WaitTimeoutException;
import dev.tocsin.client.model.CreateTimer;
import dev.tocsin.client.model.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * The session with the limits of one view of the client, and calls that are more than one request.
 *
 * @param blocking whether requests are sent by the calling thread, so that futures are completed when they are returned:
 *     that spares the way through other threads. Waiting and batches need no such haste.
 */
record Flows(Session session, Options options, boolean blocking) {
    /** Declares that no earlier try can have been executed: the server needs no look-up. */
    static final Map<String, String> FIRST_TRY = Map.of("tocsin-first-try", "1");

    private static final double WAIT_POLL_FIRST_S = 0.1;
    private static final double WAIT_POLL_S_MAX = 2.0;
    /** Before the instant: what is awaited can be canceled or changed meanwhile, and the server's clock can differ. */
    private static final double WAIT_SLEEP_S_MAX = 30.0;
    /** The same if the server's clock can be moved, which makes an instant come at once. */
    private static final double WAIT_SLEEP_MOVABLE_S_MAX = 1.0;

    /** These flows for calls that block. */
    Flows inCallingThread() {
        return new Flows(session, options, true);
    }

    /** One request and its answer. */
    <T> CompletableFuture<T> ask(Call call, Function<Json, T> read) {
        return perform(call, reply -> reply.read(read));
    }

    /** One request that is answered by nothing. */
    CompletableFuture<Void> order(Call call) {
        return perform(call, reply -> null);
    }

    private <T> CompletableFuture<T> perform(Call call, Function<Reply, T> read) {
        if (!blocking) {
            return Run.start(run -> session.perform(run, call, options).thenApply(read));
        }
        try {
            return CompletableFuture.completedFuture(read.apply(session.performNow(call, options, new AtomicBoolean())));
        } catch (RuntimeException failed) {
            return CompletableFuture.failedFuture(failed);
        } catch (InterruptedException interrupted) {
            return CompletableFuture.failedFuture(Run.interrupted());
        }
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
        AtomicBoolean maybeDone = new AtomicBoolean();
        return Run.start(run -> {
            CompletableFuture<Void> result = new CompletableFuture<>();
            session.perform(run, call, options, maybeDone).whenComplete((reply, failure) -> {
                Throwable error = failure == null ? null : Run.unwrapped(failure);
                if (error == null) {
                    result.complete(null);
                } else if (maybeDone.get() && (error instanceof NotFoundException || error instanceof ConflictException)) {
                    settle(session.perform(run, get, options), isGone, error, result);
                } else {
                    result.completeExceptionally(error);
                }
            });
            return result;
        });
    }

    private static void settle(
            CompletableFuture<Reply> got, Predicate<Json> isGone, Throwable refused, CompletableFuture<Void> result) {
        got.whenComplete((reply, failure) -> {
            Throwable error = failure == null ? null : Run.unwrapped(failure);
            if (error instanceof NotFoundException) {
                result.complete(null);
            } else if (error != null) {
                result.completeExceptionally(error);
            } else {
                Run.<Reply>guarded(result, each -> {
                    if (each.read(isGone::test)) {
                        result.complete(null);
                    } else {
                        result.completeExceptionally(refused);
                    }
                }).accept(reply, null);
            }
        });
    }

    /** Asks again and again until the object has finished; null as timeout: however long it takes. */
    <T> CompletableFuture<T> await(
            Call get, Function<Json, T> read, Predicate<T> isFinished, Function<T, Instant> next, Duration timeout,
                    String what) {
        return Run.start(run -> {
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
                        Duration timeout,
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
            session.perform(run, get, options).whenComplete(Run.guarded(result, reply -> {
                T found = reply.read(read);
                if (isFinished.test(found)) {
                    result.complete(found);
                } else {
                    double left = end - Session.monotonic();
                    if (left <= 0) {
                        throw new WaitTimeoutException(what + " has not finished in time");
                    }
                    double seconds = Math.min(seconds(next.apply(found), reply), left);
                    run.sleep(seconds).whenCompleteAsync(Run.guarded(result, awake -> poll()));
                }
            }));
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
