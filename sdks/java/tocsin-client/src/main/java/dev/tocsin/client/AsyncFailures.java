package dev.tocsin.client;

import dev.tocsin.client.model.DismissFailures;
import dev.tocsin.client.model.DismissedFailures;
import dev.tocsin.client.model.Failure;
import dev.tocsin.client.model.FailureList;
import dev.tocsin.client.model.FailurePage;
import dev.tocsin.client.model.ListFailureMembers;
import dev.tocsin.client.model.ListFailures;
import java.util.concurrent.CompletableFuture;

/**
 * Timers, occurrences of schedules and, of a tenant instead of a namespace, service calls that failed, until they are dismissed;
 * for programs that do not block.
 */
public final class AsyncFailures {
    private final Steps steps;

    AsyncFailures(Steps steps) {
        this.steps = steps;
    }

    /**
     * Lists groups of failures with the same cause, those with most failures first.
     *
     * @param wanted which failures, and how to group them
     * @return the groups
     */
    public CompletableFuture<FailureList> list(ListFailures wanted) {
        return steps.ask(Call.of(Operation.LIST_FAILURES, wanted.toJson()), FailureList::fromJson);
    }

    /**
     * Lists the failures of a group, or all, newest first.
     *
     * @param query which failures; its limit is the size of a page
     * @return the failures
     */
    public AsyncPages<Failure> members(ListFailureMembers query) {
        return new AsyncPages<>(after -> {
            ListFailureMembers page = after == null ? query : query.cursor(after);
            return steps.ask(Call.of(Operation.LIST_FAILURE_MEMBERS, page.toJson()), json -> {
                FailurePage found = FailurePage.fromJson(json);
                return new Page<>(found.failures(), found.nextCursor());
            });
        });
    }

    /**
     * Removes failures from the list: by their ids, those of a group, or all. Repeat it while the answer has {@code more}.
     *
     * @param wanted which failures
     * @return how many
     */
    public CompletableFuture<DismissedFailures> dismiss(DismissFailures wanted) {
        return steps.ask(Call.of(Operation.DISMISS_FAILURES, wanted.toJson()), DismissedFailures::fromJson);
    }
}
