// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Filters of a list of audit entries; an entry must match all of them.
 *
 * @param action An action, or several: entries with any of them match.
 * @param keyId The key that acted.
 * @param subject The object of the action: a namespace's name or a key's id.
 * @param after Only entries at or after this instant.
 * @param before Only entries before this instant.
 * @param limit Maximum number of entries on the page. Default 100.
 * @param cursor <code>nextCursor</code> of the previous page.
 */
public record ListAudit(
        Field<List<AuditAction>> action,
        Field<String> keyId,
        Field<String> subject,
        Field<Instant> after,
        Field<Instant> before,
        Field<Long> limit,
        Field<String> cursor) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static ListAudit all() {
        return new ListAudit(
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * An action, or several: entries with any of them match.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListAudit action(List<AuditAction> value) {
        return action(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param action An action, or several: entries with any of them match.
     * @return a copy with it
     */
    public ListAudit action(Field<List<AuditAction>> action) {
        return new ListAudit(
                action,
                keyId,
                subject,
                after,
                before,
                limit,
                cursor);
    }

    /**
     * The key that acted.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListAudit keyId(String value) {
        return keyId(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param keyId The key that acted.
     * @return a copy with it
     */
    public ListAudit keyId(Field<String> keyId) {
        return new ListAudit(
                action,
                keyId,
                subject,
                after,
                before,
                limit,
                cursor);
    }

    /**
     * The object of the action: a namespace's name or a key's id.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListAudit subject(String value) {
        return subject(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param subject The object of the action: a namespace's name or a key's id.
     * @return a copy with it
     */
    public ListAudit subject(Field<String> subject) {
        return new ListAudit(
                action,
                keyId,
                subject,
                after,
                before,
                limit,
                cursor);
    }

    /**
     * Only entries at or after this instant.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListAudit after(Instant value) {
        return after(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param after Only entries at or after this instant.
     * @return a copy with it
     */
    public ListAudit after(Field<Instant> after) {
        return new ListAudit(
                action,
                keyId,
                subject,
                after,
                before,
                limit,
                cursor);
    }

    /**
     * Only entries before this instant.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListAudit before(Instant value) {
        return before(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param before Only entries before this instant.
     * @return a copy with it
     */
    public ListAudit before(Field<Instant> before) {
        return new ListAudit(
                action,
                keyId,
                subject,
                after,
                before,
                limit,
                cursor);
    }

    /**
     * Maximum number of entries on the page. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListAudit limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of entries on the page. Default 100.
     * @return a copy with it
     */
    public ListAudit limit(Field<Long> limit) {
        return new ListAudit(
                action,
                keyId,
                subject,
                after,
                before,
                limit,
                cursor);
    }

    /**
     * <code>nextCursor</code> of the previous page.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListAudit cursor(String value) {
        return cursor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cursor <code>nextCursor</code> of the previous page.
     * @return a copy with it
     */
    public ListAudit cursor(Field<String> cursor) {
        return new ListAudit(
                action,
                keyId,
                subject,
                after,
                before,
                limit,
                cursor);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        action.putInto(sent, "action", each -> Json.array(each, AuditAction::toJson));
        keyId.putInto(sent, "keyId", Json::of);
        subject.putInto(sent, "subject", Json::of);
        after.putInto(sent, "after", Values::toJson);
        before.putInto(sent, "before", Values::toJson);
        limit.putInto(sent, "limit", Json::of);
        cursor.putInto(sent, "cursor", Json::of);
        return Json.object(sent);
    }
}