package dev.tocsin.client;

import dev.tocsin.client.error.BatcherClosedException;
import dev.tocsin.client.error.BatcherFullException;
import dev.tocsin.client.error.InvalidArgumentException;
import dev.tocsin.client.model.CreateTimer;
import dev.tocsin.client.model.Timer;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Timers that any number of threads add are sent together: 500 in a request, or those of 5 ms. Close it, or use it in a
 * {@code try} statement.
 */
public final class Batcher implements AutoCloseable {
    /** What adding does while 10,000 timers wait. */
    public enum WhenFull {
        /** It blocks until there is room. */
        BLOCK,
        /** It throws a BatcherFullException. */
        REFUSE
    }

    private final Steps steps;
    private final WhenFull whenFull;
    private final BatchQueue queue = new BatchQueue();
    private final CompletableFuture<Void> ended = new CompletableFuture<>();
    /** When this batcher wakes up to send what has lingered; infinity: not at all. */
    private double wakesAt = Double.POSITIVE_INFINITY;

    Batcher(Steps steps, WhenFull whenFull) {
        this.steps = steps;
        this.whenFull = whenFull;
    }

    /**
     * Adds a timer.
     *
     * @param timer to create
     * @return completed with the timer as created, or with the error; canceling it changes nothing on the server
     * @throws BatcherFullException if 10,000 timers wait and this batcher refuses then
     * @throws BatcherClosedException if it is closed
     */
    public CompletableFuture<Timer> add(CreateTimer timer) {
        Batches.Item item;
        try {
            item = Batches.Item.of(timer);
        } catch (InvalidArgumentException wrong) {
            return CompletableFuture.failedFuture(wrong);
        }
        CompletableFuture<Timer> waiter = new CompletableFuture<>();
        synchronized (this) {
            while (queue.isFull() && !queue.closing) {
                awaitRoom();
            }
            if (queue.closing) {
                throw new BatcherClosedException("the batcher is closed; make another");
            }
            Router router = steps.session().router;
            String owner = router == null ? "" : router.urlOf(item.place());
            queue.add(owner, new BatchQueue.Entry(item, waiter, Session.monotonic()));
            dispatch();
        }
        return waiter;
    }

    private void awaitRoom() {
        if (whenFull == WhenFull.REFUSE) {
            throw new BatcherFullException("10000 timers wait; add more later, or make a batcher that blocks");
        }
        try {
            wait();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new CancellationException("the thread was interrupted; the timer was not added");
        }
    }

    /** Sends what waits, and returns when every future is completed. */
    @Override
    public void close() {
        Run.join(closeAsync());
    }

    /**
     * Sends what waits.
     *
     * @return completed when every future of a timer is
     */
    public CompletableFuture<Void> closeAsync() {
        synchronized (this) {
            queue.closing = true;
            dispatch();
        }
        return ended.copy();
    }

    /** Sends what is ready, and sees to it that this is called when more will be. Needs the lock. */
    private void dispatch() {
        for (BatchQueue.Taken taken = queue.take(Session.monotonic()); taken != null; taken =
                queue.take(Session.monotonic())) {
            BatchQueue.Taken request = taken;
            notifyAll();
            CompletableFuture.runAsync(() -> send(request));
        }
        if (queue.closing && queue.isIdle()) {
            notifyAll();
            ended.complete(null);
            return;
        }
        double next = queue.readyAt();
        if (next < wakesAt) {
            wakesAt = next;
            long pause = (long) Math.ceil(Math.max(next - Session.monotonic(), 0) * 1e6);
            CompletableFuture.delayedExecutor(pause, TimeUnit.MICROSECONDS).execute(this::wake);
        }
    }

    private synchronized void wake() {
        wakesAt = Double.POSITIVE_INFINITY;
        dispatch();
    }

    private void send(BatchQueue.Taken taken) {
        List<BatchQueue.Entry> entries = taken.entries();
        List<Batches.Item> items = entries.stream().map(BatchQueue.Entry::item).toList();
        Batches.Settle settle = (index, result) -> {
            CompletableFuture<Timer> waiter = entries.get(index).waiter();
            if (result.error() == null) {
                waiter.complete(result.timer());
            } else {
                waiter.completeExceptionally(result.error());
            }
        };
        CompletableFuture<Void> request;
        try {
            request = Run.start(run -> new Batches(steps, run).createChunk(items, settle));
        } catch (RuntimeException crash) {
            request = CompletableFuture.failedFuture(crash);
        }
        request.whenComplete((done, crash) -> {
            if (crash != null) {
                entries.forEach(entry -> entry.waiter().completeExceptionally(crash));
            }
            synchronized (this) {
                queue.settled(taken);
                notifyAll();
                dispatch();
            }
        });
    }
}
