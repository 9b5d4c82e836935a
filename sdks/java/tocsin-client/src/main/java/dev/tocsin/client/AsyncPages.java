package dev.tocsin.client;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A list that is longer than an answer, read page by page.
 *
 * @param <T> the type of an element
 */
public final class AsyncPages<T> {
    private final Function<@Nullable String, CompletableFuture<Page<T>>> fetch;

    AsyncPages(Function<@Nullable String, CompletableFuture<Page<T>>> fetch) {
        this.fetch = fetch;
    }

    /**
     * One page.
     *
     * @param after {@code next} of the page before; null: the first
     * @return the page
     */
    public CompletableFuture<Page<T>> page(@Nullable String after) {
        return fetch.apply(after);
    }

    /**
     * Calls the consumer with each page, one after another.
     *
     * @param consumer gets the elements of a page
     * @return completed after the last page; canceling it ends the reading
     */
    public CompletableFuture<Void> forEachPage(Consumer<List<T>> consumer) {
        return Run.start(run -> {
            CompletableFuture<Void> result = new CompletableFuture<>();
            read(run, null, consumer, result);
            return result;
        });
    }

    private void read(Run run, @Nullable String after, Consumer<List<T>> consumer, CompletableFuture<Void> result) {
        run.waitingFor(page(after)).whenCompleteAsync(Run.guarded(result, page -> {
            consumer.accept(page.items());
            if (page.next() == null) {
                result.complete(null);
            } else {
                read(run, page.next(), consumer, result);
            }
        }));
    }

    /**
     * Calls the consumer with each element.
     *
     * @param consumer gets an element
     * @return completed after the last element; canceling it ends the reading
     */
    public CompletableFuture<Void> forEach(Consumer<T> consumer) {
        return forEachPage(page -> page.forEach(consumer));
    }

    /**
     * All elements. Use it for lists that fit into memory.
     *
     * @return the elements
     */
    public CompletableFuture<List<T>> all() {
        List<T> all = new ArrayList<>();
        return forEach(all::add).thenApply(done -> all);
    }
}
