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
 * Filters of a list of timers; a timer must match all of them.
 *
 * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
 * @param status A status, or several: timers with any of them match.
 * @param tags A timer must have all of these tags.
 * @param idPrefix Prefix of the timers' ids.
 * @param executeAfter An RFC 3339 instant with a time zone.
 * @param executeBefore An RFC 3339 instant with a time zone.
 * @param destination A part of the callback's host and path; case does not matter.
 * @param error A part of the last error; case does not matter.
 * @param explain Adds to each timer that is due what it does now, or waits for (explanation).
 * @param limit Maximum number of timers on the page. Default 100.
 * @param cursor <code>nextCursor</code> of the previous page.
 */
public record ListTimers(
        String namespace,
        Field<List<TimerStatus>> status,
        Field<List<String>> tags,
        Field<String> idPrefix,
        Field<Instant> executeAfter,
        Field<Instant> executeBefore,
        Field<String> destination,
        Field<String> error,
        Field<Boolean> explain,
        Field<Long> limit,
        Field<String> cursor) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
     * @return the request
     */
    public static ListTimers in(String namespace) {
        return new ListTimers(
                namespace,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * A status, or several: timers with any of them match.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListTimers status(List<TimerStatus> value) {
        return status(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param status A status, or several: timers with any of them match.
     * @return a copy with it
     */
    public ListTimers status(Field<List<TimerStatus>> status) {
        return new ListTimers(
                namespace,
                status,
                tags,
                idPrefix,
                executeAfter,
                executeBefore,
                destination,
                error,
                explain,
                limit,
                cursor);
    }

    /**
     * A timer must have all of these tags.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListTimers tags(List<String> value) {
        return tags(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tags A timer must have all of these tags.
     * @return a copy with it
     */
    public ListTimers tags(Field<List<String>> tags) {
        return new ListTimers(
                namespace,
                status,
                tags,
                idPrefix,
                executeAfter,
                executeBefore,
                destination,
                error,
                explain,
                limit,
                cursor);
    }

    /**
     * Prefix of the timers' ids.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListTimers idPrefix(String value) {
        return idPrefix(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param idPrefix Prefix of the timers' ids.
     * @return a copy with it
     */
    public ListTimers idPrefix(Field<String> idPrefix) {
        return new ListTimers(
                namespace,
                status,
                tags,
                idPrefix,
                executeAfter,
                executeBefore,
                destination,
                error,
                explain,
                limit,
                cursor);
    }

    /**
     * An RFC 3339 instant with a time zone.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListTimers executeAfter(Instant value) {
        return executeAfter(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param executeAfter An RFC 3339 instant with a time zone.
     * @return a copy with it
     */
    public ListTimers executeAfter(Field<Instant> executeAfter) {
        return new ListTimers(
                namespace,
                status,
                tags,
                idPrefix,
                executeAfter,
                executeBefore,
                destination,
                error,
                explain,
                limit,
                cursor);
    }

    /**
     * An RFC 3339 instant with a time zone.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListTimers executeBefore(Instant value) {
        return executeBefore(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param executeBefore An RFC 3339 instant with a time zone.
     * @return a copy with it
     */
    public ListTimers executeBefore(Field<Instant> executeBefore) {
        return new ListTimers(
                namespace,
                status,
                tags,
                idPrefix,
                executeAfter,
                executeBefore,
                destination,
                error,
                explain,
                limit,
                cursor);
    }

    /**
     * A part of the callback's host and path; case does not matter.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListTimers destination(String value) {
        return destination(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param destination A part of the callback's host and path; case does not matter.
     * @return a copy with it
     */
    public ListTimers destination(Field<String> destination) {
        return new ListTimers(
                namespace,
                status,
                tags,
                idPrefix,
                executeAfter,
                executeBefore,
                destination,
                error,
                explain,
                limit,
                cursor);
    }

    /**
     * A part of the last error; case does not matter.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListTimers error(String value) {
        return error(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param error A part of the last error; case does not matter.
     * @return a copy with it
     */
    public ListTimers error(Field<String> error) {
        return new ListTimers(
                namespace,
                status,
                tags,
                idPrefix,
                executeAfter,
                executeBefore,
                destination,
                error,
                explain,
                limit,
                cursor);
    }

    /**
     * Adds to each timer that is due what it does now, or waits for (explanation).
     *
     * @param value its value
     * @return a copy with it
     */
    public ListTimers explain(boolean value) {
        return explain(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param explain Adds to each timer that is due what it does now, or waits for (explanation).
     * @return a copy with it
     */
    public ListTimers explain(Field<Boolean> explain) {
        return new ListTimers(
                namespace,
                status,
                tags,
                idPrefix,
                executeAfter,
                executeBefore,
                destination,
                error,
                explain,
                limit,
                cursor);
    }

    /**
     * Maximum number of timers on the page. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListTimers limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of timers on the page. Default 100.
     * @return a copy with it
     */
    public ListTimers limit(Field<Long> limit) {
        return new ListTimers(
                namespace,
                status,
                tags,
                idPrefix,
                executeAfter,
                executeBefore,
                destination,
                error,
                explain,
                limit,
                cursor);
    }

    /**
     * <code>nextCursor</code> of the previous page.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListTimers cursor(String value) {
        return cursor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cursor <code>nextCursor</code> of the previous page.
     * @return a copy with it
     */
    public ListTimers cursor(Field<String> cursor) {
        return new ListTimers(
                namespace,
                status,
                tags,
                idPrefix,
                executeAfter,
                executeBefore,
                destination,
                error,
                explain,
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
        status.putInto(sent, "status", each -> Json.array(each, TimerStatus::toJson));
        tags.putInto(sent, "tags", each -> Json.array(each, Json::of));
        idPrefix.putInto(sent, "idPrefix", Json::of);
        executeAfter.putInto(sent, "executeAfter", Values::toJson);
        executeBefore.putInto(sent, "executeBefore", Values::toJson);
        destination.putInto(sent, "destination", Json::of);
        error.putInto(sent, "error", Json::of);
        explain.putInto(sent, "explain", Json::of);
        limit.putInto(sent, "limit", Json::of);
        cursor.putInto(sent, "cursor", Json::of);
        return Json.object(sent);
    }
}