package dev.tocsin.client;

import dev.tocsin.client.error.InvalidArgumentException;
import dev.tocsin.client.error.Problem;
import dev.tocsin.client.error.TocsinException;
import dev.tocsin.client.model.BatchResult;
import dev.tocsin.client.model.CreateTimer;
import dev.tocsin.client.model.Timer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Creates many timers: in requests of bounded size, each timer with its own key and result. */
final class Batches {
    private static final int ITEMS_MAX = 1_000;
    static final int BYTES_MAX = 8 * 1024 * 1024;
    /** Of a request around its timers. */
    static final int ENVELOPE_BYTES = "{\"timers\":[]}".length();

    /**
     * A timer as it is sent, with its key.
     *
     * @param sizeBytes of the body, and a comma
     * @param automatic whether the key was made here, so that no earlier request can have used it
     */
    record Item(Place place, Json body, int sizeBytes, boolean automatic) {
        /** InvalidArgumentException: it can't be sent. */
        static Item of(CreateTimer timer) {
            try {
                return encoded(timer);
            } catch (NullPointerException missing) {
                throw new InvalidArgumentException("the timer, or a part that it needs, is null", missing);
            }
        }

        private static Item encoded(CreateTimer timer) {
            boolean automatic = !timer.idempotencyKey().isPresent();
            Json body = (automatic ? timer.idempotencyKey(UUID.randomUUID().toString()) : timer).toJson();
            return new Item(new Place(timer.namespace(), timer.id()), body, sizeBytes(body), automatic);
        }

        /** Of a row of an outbox, with its key. JsonException: it is no timer. */
        static Item ofJson(Json body) {
            Place place = new Place(body.read("namespace", Json::asString), body.read("id", Json::asString));
            return new Item(place, body, sizeBytes(body), false);
        }

        private static int sizeBytes(Json body) {
            return body.toString().getBytes(StandardCharsets.UTF_8).length + 1;
        }
    }

    /** Gets the place of a timer in its batch, and what became of it. */
    interface Settle {
        void settle(int index, ItemResult result);
    }

    private final Steps steps;
    private final Run run;
    /** Errors of requests; the others are each of one timer that a request has answered. */
    private final Set<TocsinException> ofRequests = ConcurrentHashMap.newKeySet();

    Batches(Steps steps, Run run) {
        this.steps = steps;
        this.run = run;
    }

    /** What became of so many timers, in the order of the request. */
    static List<ItemResult> resultsOf(Reply reply, int count) {
        List<BatchResult> answers = reply.read(found -> found.read("results", each -> each.asList(Batches::resultOf)));
        if (answers.size() != count) {
            throw reply.foreign("it has " + answers.size() + " results for " + count + " timers");
        }
        List<ItemResult> results = new ArrayList<>();
        for (BatchResult answer : answers) {
            if (answer.error() != null) {
                results.add(ItemResult.failed(Problem.of(answer.error()).toException()));
                continue;
            }
            boolean existing = Boolean.TRUE.equals(answer.existing());
            results.add(new ItemResult(answer.timer(), null, existing, Boolean.TRUE.equals(answer.replayed())));
        }
        return results;
    }

    private static BatchResult resultOf(Json found) {
        BatchResult result = BatchResult.fromJson(found);
        if (result.timer() == null && result.error() == null) {
            throw new JsonException("a result has neither a timer nor an error");
        }
        return result;
    }

    /** The results, in the timers' order. A failed request is the result of all its timers, and the next one follows. */
    CompletableFuture<List<ItemResult>> createAll(Iterator<CreateTimer> timers) {
        CompletableFuture<List<ItemResult>> all = new CompletableFuture<>();
        List<ItemResult> results = new ArrayList<>();
        nextChunk(timers, nextItem(timers, results), results, all);
        return all;
    }

    /**
     * What became of one request.
     *
     * @param results in the order of the items
     * @param whole why none of them has an answer of its own; null if one has
     */
    record Outcome(List<ItemResult> results, @Nullable TocsinException whole) {}

    /** Creates the timers of one request. */
    CompletableFuture<Outcome> createItems(List<Item> items) {
        ItemResult[] results = new ItemResult[items.size()];
        return createChunk(items, (index, result) -> results[index] = result).thenApply(done -> {
            TocsinException first = results[0].error();
            boolean whole = first != null && ofRequests.contains(first)
                    && Arrays.stream(results).allMatch(result -> result.error() == first);
            return new Outcome(List.of(results), whole ? first : null);
        });
    }

    /** Null: there are no more. Timers that can't be sent are settled at once; the place of the item is the last. */
    private static @Nullable Item nextItem(Iterator<CreateTimer> timers, List<ItemResult> results) {
        while (timers.hasNext()) {
            CreateTimer timer = timers.next();
            try {
                Item item = Item.of(timer);
                results.add(null);
                return item;
            } catch (InvalidArgumentException wrong) {
                results.add(ItemResult.failed(wrong));
            }
        }
        return null;
    }

    private void nextChunk(
            Iterator<CreateTimer> timers, @Nullable Item first, List<ItemResult> results, CompletableFuture<List<ItemResult>> all) {
        if (first == null) {
            all.complete(results);
            return;
        }
        List<Item> chunk = new ArrayList<>();
        List<Integer> places = new ArrayList<>();
        int sizeBytes = ENVELOPE_BYTES;
        Item next = first;
        int place = results.size() - 1;
        do {
            chunk.add(next);
            places.add(place);
            sizeBytes += next.sizeBytes;
            next = nextItem(timers, results);
            place = results.size() - 1;
        } while (next != null && chunk.size() < ITEMS_MAX && sizeBytes + next.sizeBytes <= BYTES_MAX);
        Item following = next;
        createChunk(chunk, (index, result) -> results.set(places.get(index), result)).whenCompleteAsync(
                Run.guarded(all, done -> nextChunk(timers, following, results, all)), run.executor());
    }

    /** One request for each owner, if owners are asked directly, else one. Each timer is settled once. */
    CompletableFuture<Void> createChunk(List<Item> items, Settle settle) {
        CompletableFuture<Void> grouped = CompletableFuture.completedFuture(null);
        Map<String, List<Integer>> groups = new LinkedHashMap<>();
        if (steps.session().router == null) {
            groups.put("", IntStream.range(0, items.size()).boxed().toList());
        } else {
            // Only the first reads the map.
            grouped = steps.session().ownerOf(run, items.get(0).place).thenAccept(first -> {
                for (int i = 0; i < items.size(); i++) {
                    String owner = steps.session().router.urlOf(items.get(i).place);
                    groups.computeIfAbsent(owner, url -> new ArrayList<>()).add(i);
                }
            });
        }
        return grouped.thenCompose(ready -> {
            CompletableFuture<Void> all = CompletableFuture.completedFuture(null);
            for (List<Integer> group : groups.values()) {
                all = all.thenCompose(before -> new Group(items, settle).create(group));
            }
            return all;
        });
    }

    /** The timers of one owner: those that are refused for the moment go again, without those that have a result. */
    private final class Group {
        private final List<Item> items;
        private final Settle settle;
        private final double started = Session.monotonic();
        private final CompletableFuture<Void> done = new CompletableFuture<>();
        private int retry;
        private int paid;

        Group(List<Item> items, Settle settle) {
            this.items = items;
            this.settle = settle;
        }

        CompletableFuture<Void> create(List<Integer> waiting) {
            double elapsed = Session.monotonic() - started;
            Options limits = steps.options();
            double left = Math.max(limits.timeoutSeconds() - elapsed, 0.001);
            Options ofThis = new Options(Duration.ofNanos((long) (left * 1e9)), limits.retries());
            steps.session().perform(run, call(waiting, elapsed), ofThis).thenApply(reply -> resultsOf(waiting, reply))
                    .whenComplete((results, failure) -> {
                        Throwable error = failure == null ? null : Run.unwrapped(failure);
                        if (error instanceof TocsinException failed) { // after all its retries
                            ofRequests.add(failed);
                            waiting.forEach(index -> settle.settle(index, ItemResult.failed(failed)));
                            done.complete(null);
                        } else {
                            Run.<List<ItemResult>>guarded(done, each -> answered(waiting, each)).accept(results, error);
                        }
                    });
            return done;
        }

        private Call call(List<Integer> waiting, double elapsed) {
            Json timers = Json.array(waiting, index -> items.get(index).body);
            Json body = Json.object().with("timers", timers);
            Call call = Call.of(Operation.BATCH_CREATE_TIMERS, retry == 0 ? body : Session.remaining(body, elapsed));
            boolean first = retry == 0 && waiting.stream().allMatch(index -> items.get(index).automatic);
            // Retries go to the client's own URL.
            return (first ? call.firstHeaders(Steps.FIRST_TRY) : call).place(retry == 0
                    ? items.get(waiting.get(0)).place : null);
        }

        private List<ItemResult> resultsOf(List<Integer> waiting, Reply reply) {
            List<ItemResult> results = Batches.resultsOf(reply, waiting.size());
            for (int i = 0; steps.session().router != null && i < waiting.size(); i++) {
                Timer timer = results.get(i).timer();
                if (timer != null) {
                    steps.session().router.check(items.get(waiting.get(i)).place, timer.shardId());
                }
            }
            return results;
        }

        private void answered(List<Integer> waiting, List<ItemResult> results) {
            Session session = steps.session();
            double left = steps.options().timeoutSeconds() - (Session.monotonic() - started);
            OptionalDouble pause = retry < steps.options().retries()
                    ? Retries.delay(retry, null, left, Session.RANDOM) : OptionalDouble.empty();
            Set<Integer> again = new LinkedHashSet<>();
            boolean costs = false;
            for (int i = 0; i < waiting.size(); i++) {
                TocsinException error = results.get(i).error();
                if (error != null && Retries.isRepeated(error, true)) {
                    again.add(waiting.get(i));
                    costs |= !Retries.isNeverExecuted(error);
                }
            }
            if (again.isEmpty() && paid > 0) {
                session.budget.succeeded(paid);
            } else if (pause.isEmpty() || costs && !session.budget.spend()) {
                again.clear();
            } else if (costs) {
                paid++;
            }
            for (int i = 0; i < waiting.size(); i++) {
                if (!again.contains(waiting.get(i))) {
                    settle.settle(waiting.get(i), results.get(i));
                }
            }
            if (again.isEmpty()) {
                done.complete(null);
            } else {
                retry++;
                run.sleep(pause.getAsDouble())
                        .whenCompleteAsync(Run.guarded(done, awake -> create(List.copyOf(again))), run.executor());
            }
        }
    }
}
