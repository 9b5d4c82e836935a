package dev.tocsin.client;

import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Function;

/** One call of a client: what it waits for at the moment, so that canceling the call ends that, too. */
final class Run {
    private CompletableFuture<?> current;
    private boolean canceled;

    /** Starts a call. Canceling its future ends what it does; its errors are not wrapped. */
    static <T> CompletableFuture<T> start(Function<Run, CompletableFuture<T>> steps) {
        Run run = new Run();
        CompletableFuture<T> result = new CompletableFuture<>();
        finish(steps.apply(run), result);
        result.whenComplete((value, error) -> {
            if (result.isCancelled()) {
                run.cancel();
            }
        });
        return result;
    }

    /** Passes the outcome of one future to another. */
    static <T> void finish(CompletableFuture<T> from, CompletableFuture<T> to) {
        from.whenComplete(guarded(to, to::complete));
    }

    /** Passes a value on, and errors, also those of `then`, to the future. */
    static <T> BiConsumer<T, Throwable> guarded(CompletableFuture<?> failing, java.util.function.Consumer<T> then) {
        return (value, error) -> {
            try {
                if (error == null) {
                    then.accept(value);
                } else {
                    failing.completeExceptionally(unwrapped(error));
                }
            } catch (RuntimeException | Error crash) {
                failing.completeExceptionally(crash);
            }
        };
    }

    static Throwable unwrapped(Throwable error) {
        return error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
    }

    /** What the call now waits for. */
    synchronized <T> CompletableFuture<T> waitingFor(CompletableFuture<T> next) {
        current = next;
        if (canceled) {
            next.cancel(true);
        }
        return next;
    }

    CompletableFuture<Void> sleep(double seconds) {
        CompletableFuture<Void> awake = new CompletableFuture<>();
        return waitingFor(awake.completeOnTimeout(null, (long) Math.ceil(seconds * 1e6), TimeUnit.MICROSECONDS));
    }

    private void cancel() {
        CompletableFuture<?> ended;
        synchronized (this) {
            canceled = true;
            ended = current;
        }
        if (ended != null) {
            ended.cancel(true);
        }
    }

    /** What an interrupted call throws. The thread stays interrupted. */
    static CancellationException interrupted() {
        Thread.currentThread().interrupt();
        return new CancellationException("the thread was interrupted; a request on its way may have been executed");
    }

    /** Waits for a call. An interrupt cancels it: CancellationException, and the thread stays interrupted. */
    static <T> T join(CompletableFuture<T> call) {
        try {
            return call.get();
        } catch (InterruptedException interrupted) {
            call.cancel(true);
            throw interrupted();
        } catch (ExecutionException failed) {
            Throwable error = failed.getCause();
            // The trace of the calling thread is worth more than that of the thread that read the answer.
            error.fillInStackTrace();
            if (error instanceof RuntimeException unchecked) {
                throw unchecked;
            }
            if (error instanceof Error fatal) {
                throw fatal;
            }
            throw new CompletionException(error);
        }
    }
}
