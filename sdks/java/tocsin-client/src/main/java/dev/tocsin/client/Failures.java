package dev.tocsin.client;

import dev.tocsin.client.model.DismissFailures;
import dev.tocsin.client.model.DismissedFailures;
import dev.tocsin.client.model.Failure;
import dev.tocsin.client.model.FailureList;
import dev.tocsin.client.model.ListFailureMembers;
import dev.tocsin.client.model.ListFailures;

/** Timers, occurrences of schedules and, of a tenant instead of a namespace, service calls that failed, until dismissed. */
public final class Failures {
    private final AsyncFailures async;

    Failures(AsyncFailures async) {
        this.async = async;
    }

    /**
     * Lists groups of failures with the same cause, those with most failures first.
     *
     * @param wanted which failures, and how to group them
     * @return the groups
     */
    public FailureList list(ListFailures wanted) {
        return Run.join(async.list(wanted));
    }

    /**
     * Lists the failures of a group, or all, newest first.
     *
     * @param query which failures; its limit is the size of a page
     * @return the failures
     */
    public Pages<Failure> members(ListFailureMembers query) {
        return new Pages<>(async.members(query));
    }

    /**
     * Removes failures from the list: by their ids, those of a group, or all. Repeat it while the answer has {@code more}.
     *
     * @param wanted which failures
     * @return how many
     */
    public DismissedFailures dismiss(DismissFailures wanted) {
        return Run.join(async.dismiss(wanted));
    }
}
