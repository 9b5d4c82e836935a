package dev.tocsin.client;

import dev.tocsin.client.error.CollectionFullException;
import dev.tocsin.client.error.TimerNotFoundException;
import dev.tocsin.client.error.TimerNotPendingException;
import dev.tocsin.client.error.WaitTimeoutException;
import dev.tocsin.client.model.CreateTimer;
import dev.tocsin.client.model.Explanation;
import dev.tocsin.client.model.ListTimers;
import dev.tocsin.client.model.ReplayTimers;
import dev.tocsin.client.model.RunAnswer;
import dev.tocsin.client.model.Timer;
import dev.tocsin.client.model.TimerHistory;
import dev.tocsin.client.model.UpdateTimer;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Timers: each calls a URL at an instant. */
public final class Timers {
    private final AsyncTimers async;

    Timers(AsyncTimers async) {
        this.async = async;
    }

    /**
     * Creates a timer; it is durable when the call succeeds. A pending timer with the same id is replaced, unless
     * {@code onConflict} asks otherwise. If an answer is lost, the request is repeated with the same idempotency key: one
     * call creates one timer, which fires once. Give a key of your own if your program itself may repeat the call, as after
     * a crash.
     *
     * @param timer with one of executeAt and delay, and at most one of payload and body
     * @return the timer
     */
    public Timer create(CreateTimer timer) {
        return Run.join(async.create(timer));
    }

    /**
     * Creates a timer that fires once for all creates of its id that follow one another. Its payload is the latest one; with
     * {@code collect} it is an array of all of them, and {@link CollectionFullException} means that it has no room for
     * another until it has fired.
     *
     * @param timer without executeAt and delay
     * @param delay how long after the latest create it fires
     * @param maxDelay how long after the first create it fires at the latest
     * @return the timer
     */
    public Timer debounce(CreateTimer timer, Duration delay, Duration maxDelay) {
        return Run.join(async.debounce(timer, delay, maxDelay));
    }

    /**
     * Reads a timer, pending or finished.
     *
     * @param namespace its namespace
     * @param timerId its id
     * @return the timer
     * @throws TimerNotFoundException if there is none, or it is no longer retained
     */
    public Timer get(String namespace, String timerId) {
        return Run.join(async.get(namespace, timerId));
    }

    /**
     * Changes a pending timer.
     *
     * @param change what to change; absent fields stay, {@code Field.ofNull()} removes
     * @return the timer after the change
     * @throws TimerNotPendingException if it has finished
     */
    public Timer update(UpdateTimer change) {
        return Run.join(async.update(change));
    }

    /**
     * Cancels a pending timer; an attempt in flight may still arrive.
     *
     * @param namespace its namespace
     * @param timerId its id
     * @throws TimerNotPendingException if it has finished
     */
    public void delete(String namespace, String timerId) {
        Run.join(async.delete(namespace, timerId));
    }

    /**
     * Lists timers, ordered by {@code executeAt}.
     *
     * @param query which timers; its limit is the size of a page
     * @return the timers
     */
    public Pages<Timer> list(ListTimers query) {
        return new Pages<>(async.list(query));
    }

    /**
     * Explains where a timer is now, and what it waits for.
     *
     * @param namespace its namespace
     * @param timerId its id
     * @return the explanation
     */
    public Explanation explain(String namespace, String timerId) {
        return Run.join(async.explain(namespace, timerId));
    }

    /**
     * Lists a timer's runs, newest first.
     *
     * @param query which timer; its limit is the size of a page
     * @return the runs
     */
    public Pages<RunAnswer> history(TimerHistory query) {
        return new Pages<>(async.history(query));
    }

    /**
     * Creates many timers, at most 1,000 or 8 MiB in a request. One that can't be created does not affect the others. Each
     * has an idempotency key, as in {@code create}.
     *
     * @param timers any number; they are read as requests are filled
     * @return the results, in the order of the timers
     */
    public List<ItemResult> createMany(Iterable<CreateTimer> timers) {
        return Run.join(async.createMany(timers));
    }

    /**
     * Fires finished timers again, at most 1,000, each under the webhook-id of its latest run: at once, or at the given
     * instant. One that can't be replayed does not affect the others. A lost answer is not followed by a retry: a
     * TransportException with {@code maybeDone}.
     *
     * @param wanted which timers, and what replaces their instant, URL and headers
     * @return the results, in the order of the ids
     */
    public List<ItemResult> replay(ReplayTimers wanted) {
        return Run.join(async.replay(wanted));
    }

    /**
     * Waits until a timer has finished.
     *
     * @param namespace its namespace
     * @param timerId its id
     * @param timeout how long at most; null: however long it takes
     * @return the finished timer
     * @throws WaitTimeoutException if that took longer
     */
    public Timer await(String namespace, String timerId, @Nullable Duration timeout) {
        return Run.join(async.await(namespace, timerId, timeout));
    }

    /**
     * Collects single creates into requests. While 10,000 timers wait, adding another blocks.
     *
     * @return a batcher to close
     */
    public Batcher batcher() {
        return async.batcher();
    }

    /**
     * Collects single creates into requests.
     *
     * @param whenFull what adding does while 10,000 timers wait
     * @return a batcher to close
     */
    public Batcher batcher(Batcher.WhenFull whenFull) {
        return async.batcher(whenFull);
    }
}
