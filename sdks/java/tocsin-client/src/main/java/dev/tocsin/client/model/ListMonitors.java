// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Which monitors are listed.
 *
 * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
 * @param state Monitors with any of these states match.
 * @param tag Monitors with this tag match.
 * @param managedBy The declaration that it comes from, such as the name of a repository.
 * @param idPrefix Monitors whose id begins so match.
 * @param limit Maximum number of monitors on the page. Default 100.
 * @param cursor <code>nextCursor</code> of the previous page.
 */
public record ListMonitors(
        String namespace,
        Field<MonitorState> state,
        Field<String> tag,
        Field<String> managedBy,
        Field<String> idPrefix,
        Field<Long> limit,
        Field<String> cursor) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
     * @return the request
     */
    public static ListMonitors in(String namespace) {
        return new ListMonitors(
                namespace,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * Monitors with any of these states match.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListMonitors state(MonitorState value) {
        return state(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param state Monitors with any of these states match.
     * @return a copy with it
     */
    public ListMonitors state(Field<MonitorState> state) {
        return new ListMonitors(
                namespace,
                state,
                tag,
                managedBy,
                idPrefix,
                limit,
                cursor);
    }

    /**
     * Monitors with this tag match.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListMonitors tag(String value) {
        return tag(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tag Monitors with this tag match.
     * @return a copy with it
     */
    public ListMonitors tag(Field<String> tag) {
        return new ListMonitors(
                namespace,
                state,
                tag,
                managedBy,
                idPrefix,
                limit,
                cursor);
    }

    /**
     * The declaration that it comes from, such as the name of a repository.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListMonitors managedBy(String value) {
        return managedBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param managedBy The declaration that it comes from, such as the name of a repository.
     * @return a copy with it
     */
    public ListMonitors managedBy(Field<String> managedBy) {
        return new ListMonitors(
                namespace,
                state,
                tag,
                managedBy,
                idPrefix,
                limit,
                cursor);
    }

    /**
     * Monitors whose id begins so match.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListMonitors idPrefix(String value) {
        return idPrefix(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param idPrefix Monitors whose id begins so match.
     * @return a copy with it
     */
    public ListMonitors idPrefix(Field<String> idPrefix) {
        return new ListMonitors(
                namespace,
                state,
                tag,
                managedBy,
                idPrefix,
                limit,
                cursor);
    }

    /**
     * Maximum number of monitors on the page. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListMonitors limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of monitors on the page. Default 100.
     * @return a copy with it
     */
    public ListMonitors limit(Field<Long> limit) {
        return new ListMonitors(
                namespace,
                state,
                tag,
                managedBy,
                idPrefix,
                limit,
                cursor);
    }

    /**
     * <code>nextCursor</code> of the previous page.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListMonitors cursor(String value) {
        return cursor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cursor <code>nextCursor</code> of the previous page.
     * @return a copy with it
     */
    public ListMonitors cursor(Field<String> cursor) {
        return new ListMonitors(
                namespace,
                state,
                tag,
                managedBy,
                idPrefix,
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
        sent.put("namespace", Json.of(namespace));
        state.putInto(sent, "state", MonitorState::toJson);
        tag.putInto(sent, "tag", Json::of);
        managedBy.putInto(sent, "managedBy", Json::of);
        idPrefix.putInto(sent, "idPrefix", Json::of);
        limit.putInto(sent, "limit", Json::of);
        cursor.putInto(sent, "cursor", Json::of);
        return Json.object(sent);
    }
}