package dev.tocsin.client;

import dev.tocsin.client.model.AuditEntry;
import dev.tocsin.client.model.ListAudit;

/** The audit trail: changes of keys and namespaces, and sign-ins. */
public final class Audit {
    private final AsyncAudit async;

    Audit(AsyncAudit async) {
        this.async = async;
    }

    /**
     * Lists entries, newest first.
     *
     * @param query which entries; its limit is the size of a page
     * @return the entries
     */
    public Pages<AuditEntry> list(ListAudit query) {
        return new Pages<>(async.list(query));
    }
}
