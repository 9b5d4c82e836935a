// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An entry of the audit trail: what somebody changed, or a sign-in.
 *
 * @param at An RFC 3339 instant with a time zone.
 * @param action The action.
 * @param keyId The key that acted; null if none was required or the key was unknown. Null if absent.
 * @param subject The object of the action; empty for sign-ins.
 * @param source Where the action came from: api, pages, cli, mcp or inbox.
 * @param address The client's address; empty for the command line and an inbox.
 * @param node The node, or the machine on which the command ran.
 * @param details Additional facts, such as the changed fields. Never a secret.
 */
public record AuditEntry(
        Instant at,
        AuditAction action,
        @Nullable String keyId,
        String subject,
        AuditSource source,
        String address,
        String node,
        Map<String, Json> details) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static AuditEntry fromJson(Json source) {
        return new AuditEntry(
                source.read("at", Values::toInstant),
                source.read("action", AuditAction::fromJson),
                source.readNullable("keyId", Json::asString),
                source.read("subject", Json::asString),
                source.read("source", AuditSource::fromJson),
                source.read("address", Json::asString),
                source.read("node", Json::asString),
                source.read("details", json -> json.asMap(value -> value)));
    }
}