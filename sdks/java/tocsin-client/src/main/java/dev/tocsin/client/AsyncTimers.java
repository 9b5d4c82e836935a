package dev.tocsin.client;

import dev.tocsin.client.error.CollectionFullException;
import dev.tocsin.client.error.TimerNotFoundException;
import dev.tocsin.client.error.TimerNotPendingException;
import dev.tocsin.client.error.WaitTimeoutException;
import dev.tocsin.client.model.CreateTimer;
import dev.tocsin.client.model.Explanation;
import dev.tocsin.client.model.ListTimers;
import dev.tocsin.client.model.OnConflict;
import dev.tocsin.client.model.ReplayTimers;
import dev.tocsin.client.model.RunAnswer;
import dev.tocsin.client.model.RunPageAnswer;
import dev.tocsin.client.model.Timer;
import dev.tocsin.client.model.TimerHistory;
import dev.tocsin.client.model.TimerName;
import dev.tocsin.client.model.TimerPage;
import dev.tocsin.client.model.TimerStatus;
import dev.tocsin.client.model.UpdateTimer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** Timers: each calls a URL at an instant; for programs that do not block. */
public final class AsyncTimers {
    private final Steps steps;

    AsyncTimers(Steps steps) {
        this.steps = steps;
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
    public CompletableFuture<Timer> create(CreateTimer timer) {
        return steps.create(timer);
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
    public CompletableFuture<Timer> debounce(CreateTimer timer, Duration delay, Duration maxDelay) {
        return create(timer.onConflict(OnConflict.DEBOUNCE).delay(delay).maxDelay(maxDelay));
    }

    /**
     * Reads a timer, pending or finished.
     *
     * @param namespace its namespace
     * @param timerId its id
     * @return the timer; fails with {@link TimerNotFoundException} if there is none, or it is no longer retained
     */
    public CompletableFuture<Timer> get(String namespace, String timerId) {
        return steps.ask(Call.of(Operation.GET_TIMER, TimerName.of(namespace, timerId).toJson()), Timer::fromJson);
    }

    /**
     * Changes a pending timer.
     *
     * @param change what to change; absent fields stay, {@code Field.ofNull()} removes
     * @return the timer after the change; fails with {@link TimerNotPendingException} if it has finished
     */
    public CompletableFuture<Timer> update(UpdateTimer change) {
        Place place = new Place(change.namespace(), change.timerId());
        Call get = Call.of(Operation.GET_TIMER, TimerName.of(change.namespace(), change.timerId()).toJson());
        return steps.update(Call.of(Operation.UPDATE_TIMER, change.toJson()).place(place), get, Timer::fromJson);
    }

    /**
     * Cancels a pending timer; an attempt in flight may still arrive.
     *
     * @param namespace its namespace
     * @param timerId its id
     * @return completed when it is done; fails with {@link TimerNotPendingException} if it has finished
     */
    public CompletableFuture<Void> delete(String namespace, String timerId) {
        Json name = TimerName.of(namespace, timerId).toJson();
        Call call = Call.of(Operation.DELETE_TIMER, name).place(new Place(namespace, timerId));
        Call get = Call.of(Operation.GET_TIMER, name);
        return steps.delete(call, get, found -> found.read("status", Json::asString).equals("canceled"));
    }

    /**
     * Lists timers, ordered by {@code executeAt}.
     *
     * @param query which timers; its limit is the size of a page
     * @return the timers
     */
    public AsyncPages<Timer> list(ListTimers query) {
        return new AsyncPages<>(after -> {
            ListTimers page = after == null ? query : query.cursor(after);
            return steps.ask(
                    Call.of(Operation.LIST_TIMERS, page.toJson()),
                    json -> {
                        TimerPage found = TimerPage.fromJson(json);
                        return new Page<>(found.timers(), found.nextCursor());
                    });
        });
    }

    /**
     * Explains where a timer is now, and what it waits for.
     *
     * @param namespace its namespace
     * @param timerId its id
     * @return the explanation
     */
    public CompletableFuture<Explanation> explain(String namespace, String timerId) {
        return steps.ask(Call.of(Operation.EXPLAIN_TIMER, TimerName.of(namespace, timerId).toJson()), Explanation::fromJson);
    }

    /**
     * Lists a timer's runs, newest first.
     *
     * @param query which timer; its limit is the size of a page
     * @return the runs
     */
    public AsyncPages<RunAnswer> history(TimerHistory query) {
        return new AsyncPages<>(after -> {
            TimerHistory page = after == null ? query : query.cursor(after);
            return steps.ask(
                    Call.of(Operation.TIMER_HISTORY, page.toJson()),
                    json -> {
                        RunPageAnswer found = RunPageAnswer.fromJson(json);
                        return new Page<>(found.runs(), found.nextCursor());
                    });
        });
    }

    /**
     * Creates many timers, at most 1,000 or 8 MiB in a request. One that can't be created does not affect the others. Each
     * has an idempotency key, as in {@code create}.
     *
     * @param timers any number; they are read as requests are filled
     * @return the results, in the order of the timers
     */
    public CompletableFuture<List<ItemResult>> createMany(Iterable<CreateTimer> timers) {
        return steps.start(run -> new Batches(steps, run).createAll(timers.iterator()));
    }

    CompletableFuture<Batches.Outcome> createItems(List<Batches.Item> items) {
        return steps.start(run -> new Batches(steps, run).createItems(items));
    }

    /**
     * Fires finished timers again, at most 1,000, each under the webhook-id of its latest run: at once, or at the given
     * instant. One that can't be replayed does not affect the others. A lost answer is not followed by a retry: a
     * TransportException with {@code maybeDone}.
     *
     * @param wanted which timers, and what replaces their instant, URL and headers
     * @return the results, in the order of the ids
     */
    public CompletableFuture<List<ItemResult>> replay(ReplayTimers wanted) {
        return steps.perform(
                Call.of(Operation.REPLAY_TIMERS, wanted.toJson()).unsafe(),
                reply -> Batches.resultsOf(reply, wanted.ids().size()));
    }

    /**
     * Waits until a timer has finished.
     *
     * @param namespace its namespace
     * @param timerId its id
     * @param timeout how long at most; null: however long it takes
     * @return the finished timer; fails with {@link WaitTimeoutException} if that took longer
     */
    public CompletableFuture<Timer> await(String namespace, String timerId, @Nullable Duration timeout) {
        return steps.await(
                Call.of(Operation.GET_TIMER, TimerName.of(namespace, timerId).toJson()),
                Timer::fromJson,
                timer -> !timer.status().equals(TimerStatus.PENDING),
                timer -> timer.nextAttemptAt() == null ? timer.executeAt() : timer.nextAttemptAt(),
                timeout,
                "timer " + timerId + " in " + namespace);
    }

    /**
     * Collects single creates into requests. While 10,000 timers wait, adding another blocks.
     *
     * @return a batcher to close
     */
    public Batcher batcher() {
        return batcher(Batcher.WhenFull.BLOCK);
    }

    /**
     * Collects single creates into requests.
     *
     * @param whenFull what adding does while 10,000 timers wait
     * @return a batcher to close
     */
    public Batcher batcher(Batcher.WhenFull whenFull) {
        return new Batcher(steps, whenFull);
    }
}
