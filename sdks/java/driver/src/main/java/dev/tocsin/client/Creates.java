package dev.tocsin.client;

import dev.tocsin.client.model.CreateTimer;
import dev.tocsin.client.model.Timer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Steps that create several timers, each with a result of its own. */
final class Creates {
    private Creates() {}

    /** What became of timers that were created one by one, so many at a time. */
    static Json each(
            AsyncTocsinClient client, boolean async, List<CreateTimer> timers, int concurrency) {
        ExecutorService threads = Executors.newFixedThreadPool(concurrency);
        TocsinClient blocking = new TocsinClient(client);
        List<CompletableFuture<Json>> results = new ArrayList<>();
        timers.forEach(each -> results.add(CompletableFuture.supplyAsync(() ->
                async ? client.timers().create(each).join() : blocking.timers().create(each), threads).handle(Creates::settled)));
        Json settled = Json.array(results, CompletableFuture::join);
        threads.shutdown();
        return settled;
    }

    private static Json settled(Timer timer, Throwable error) {
        return error == null ? Json.object().with("timer", Reflection.write(timer))
                : Json.object().with("error", Driver.failure(error));
    }

    /** What became of timers that were added to a batcher at once. */
    static Json batched(AsyncTocsinClient client, List<CreateTimer> timers) {
        List<CompletableFuture<Json>> results = new ArrayList<>();
        try (Batcher batcher = client.timers().batcher()) {
            timers.forEach(each -> results.add(batcher.add(each).handle(Creates::settled)));
        }
        return Json.array(results, CompletableFuture::join);
    }

    /** What a monitored job did. */
    static Json monitored(AsyncTocsinClient client, boolean async, Json given) {
        String namespace = given.get("namespace").asString();
        String id = given.get("id").asString();
        Callable<String> job = () -> {
            if (given.has("fail")) {
                throw new IllegalStateException(given.get("fail").asString());
            }
            return "done";
        };
        try {
            String returned = async
                    ? client.monitors().run(namespace, id, () -> Creates.completed(job)).join()
                    : new TocsinClient(client).monitors().run(namespace, id, job);
            return Json.object().with("returned", Json.of(returned));
        } catch (Exception failure) {
            Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
            return Json.object().with("raised", Json.of(cause.getMessage()));
        }
    }

    private static CompletableFuture<String> completed(Callable<String> job) {
        try {
            return CompletableFuture.completedFuture(job.call());
        } catch (Exception failure) {
            return CompletableFuture.failedFuture(failure);
        }
    }
}
