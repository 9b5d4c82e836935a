package dev.tocsin.client;

import dev.tocsin.client.model.AuditEntry;
import dev.tocsin.client.model.AuditPage;
import dev.tocsin.client.model.ListAudit;

/** The audit trail: changes of keys and namespaces, and sign-ins; for programs that do not block. */
public final class AsyncAudit {
    private final Steps steps;

    AsyncAudit(Steps steps) {
        this.steps = steps;
    }

    /**
     * Lists entries, newest first.
     *
     * @param query which entries; its limit is the size of a page
     * @return the entries
     */
    public AsyncPages<AuditEntry> list(ListAudit query) {
        return new AsyncPages<>(after -> {
            ListAudit page = after == null ? query : query.cursor(after);
            return steps.ask(Call.of(Operation.LIST_AUDIT, page.toJson()), json -> {
                AuditPage found = AuditPage.fromJson(json);
                return new Page<>(found.entries(), found.nextCursor());
            });
        });
    }
}
