package dev.tocsin.client;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** One call of a client: where it goes on, and what it waits for at the moment, so that canceling the call ends that, too. */
final class Run {
    private static final Executor ANYWHERE = new CompletableFuture<Void>().defaultExecutor();

    private final Executor executor;
    private @Nullable CompletableFuture<?> current;
    private boolean canceled;

    private Run(Executor executor) {
        this.executor = executor;
    }

    /** Starts a call. Canceling its future ends what it does; its errors are not wrapped. */
    static <T> CompletableFuture<T> start(Function<Run, CompletableFuture<T>> steps) {
        return start(new Run(ANYWHERE), steps);
    }

    /** Does a call in this thread, from the first step to the last: its future is completed when it is returned. */
    static <T> CompletableFuture<T> inThisThread(Function<Run, CompletableFuture<T>> steps) {
        BlockingQueue<Runnable> due = new LinkedBlockingQueue<>();
        CompletableFuture<T> result = start(new Run(due::add), steps);
        result.whenComplete((value, error) -> due.add(() -> {})); // wherever it was completed, the loop ends
        try {
            while (!result.isDone()) {
                due.take().run();
            }
            return result;
        } catch (InterruptedException interrupted) {
            result.cancel(true);
            return CompletableFuture.failedFuture(interrupted());
        }
    }

    private static <T> CompletableFuture<T> start(Run run, Function<Run, CompletableFuture<T>> steps) {
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

    /** Whether the call blocks its thread, so that requests are sent by it: that spares the way through other threads. */
    boolean blocks() {
        return executor != ANYWHERE;
    }

    /** Where the call goes on after it has waited. */
    Executor executor() {
        return executor;
    }

    /** What a call that blocks does at once, as a future. */
    static <T> CompletableFuture<T> now(Blocking<T> work) {
        try {
            return CompletableFuture.completedFuture(work.run());
        } catch (RuntimeException failed) {
            return CompletableFuture.failedFuture(failed);
        } catch (InterruptedException interrupted) {
            return CompletableFuture.failedFuture(interrupted());
        }
    }

    /** Work that an interrupt ends. */
    interface Blocking<T> {
        T run() throws InterruptedException;
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
