// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Which schedules are listed.
 *
 * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
 * @param status active, paused, or both: schedules with any of them match. Ended ones are not listed.
 * @param managedBy The declaration that it comes from, such as the name of a repository.
 * @param limit Maximum number of schedules on the page. Default 100.
 * @param cursor <code>nextCursor</code> of the previous page.
 */
public record ListSchedules(
        String namespace,
        Field<LiveScheduleStatus> status,
        Field<String> managedBy,
        Field<Long> limit,
        Field<String> cursor) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
     * @return the request
     */
    public static ListSchedules in(String namespace) {
        return new ListSchedules(
                namespace,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * active, paused, or both: schedules with any of them match. Ended ones are not listed.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListSchedules status(LiveScheduleStatus value) {
        return status(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param status active, paused, or both: schedules with any of them match. Ended ones are not listed.
     * @return a copy with it
     */
    public ListSchedules status(Field<LiveScheduleStatus> status) {
        return new ListSchedules(
                namespace,
                status,
                managedBy,
                limit,
                cursor);
    }

    /**
     * The declaration that it comes from, such as the name of a repository.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListSchedules managedBy(String value) {
        return managedBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param managedBy The declaration that it comes from, such as the name of a repository.
     * @return a copy with it
     */
    public ListSchedules managedBy(Field<String> managedBy) {
        return new ListSchedules(
                namespace,
                status,
                managedBy,
                limit,
                cursor);
    }

    /**
     * Maximum number of schedules on the page. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListSchedules limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of schedules on the page. Default 100.
     * @return a copy with it
     */
    public ListSchedules limit(Field<Long> limit) {
        return new ListSchedules(
                namespace,
                status,
                managedBy,
                limit,
                cursor);
    }

    /**
     * <code>nextCursor</code> of the previous page.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListSchedules cursor(String value) {
        return cursor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cursor <code>nextCursor</code> of the previous page.
     * @return a copy with it
     */
    public ListSchedules cursor(Field<String> cursor) {
        return new ListSchedules(
                namespace,
                status,
                managedBy,
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
        status.putInto(sent, "status", LiveScheduleStatus::toJson);
        managedBy.putInto(sent, "managedBy", Json::of);
        limit.putInto(sent, "limit", Json::of);
        cursor.putInto(sent, "cursor", Json::of);
        return Json.object(sent);
    }
}