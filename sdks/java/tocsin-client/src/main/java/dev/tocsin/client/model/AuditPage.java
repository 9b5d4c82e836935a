// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A page of the audit trail, newest first.
 *
 * @param entries entries
 * @param nextCursor Cursor of the next page; absent on the last page. Null if absent.
 */
public record AuditPage(
        List<AuditEntry> entries,
        @Nullable String nextCursor) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static AuditPage fromJson(Json source) {
        return new AuditPage(
                source.read("entries", json -> json.asList(AuditEntry::fromJson)),
                source.readOptional("nextCursor", Json::asString));
    }
}