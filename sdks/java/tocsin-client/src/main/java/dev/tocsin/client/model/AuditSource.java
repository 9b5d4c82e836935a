// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * Where a change came from. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record AuditSource(String value) implements OpenEnum {
    /** api. */
    public static final AuditSource API = new AuditSource("api");

    /** pages. */
    public static final AuditSource PAGES = new AuditSource("pages");

    /** cli. */
    public static final AuditSource CLI = new AuditSource("cli");

    /** mcp. */
    public static final AuditSource MCP = new AuditSource("mcp");

    /** inbox. */
    public static final AuditSource INBOX = new AuditSource("inbox");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static AuditSource fromJson(Json source) {
        return new AuditSource(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}