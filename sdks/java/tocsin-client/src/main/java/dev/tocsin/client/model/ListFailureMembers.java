// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Which failures to list: those of a group, or all.
 *
 * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
 * @param tenant The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
 * key has access to.
 * @param destination The URL that was called, without credentials and query.
 * @param error The stable code of the last error, without details.
 * @param kind What failed.
 * @param since Only failures since this instant.
 * @param limit Maximum number of failures on the page. Default 100.
 * @param cursor <code>nextCursor</code> of the previous page.
 */
public record ListFailureMembers(
        Field<String> namespace,
        Field<String> tenant,
        Field<String> destination,
        Field<String> error,
        Field<FailedKind> kind,
        Field<Instant> since,
        Field<Long> limit,
        Field<String> cursor) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static ListFailureMembers all() {
        return new ListFailureMembers(
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
     * The namespace's name; <code>*</code>: all that the API key has access to.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailureMembers namespace(String value) {
        return namespace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
     * @return a copy with it
     */
    public ListFailureMembers namespace(Field<String> namespace) {
        return new ListFailureMembers(
                namespace,
                tenant,
                destination,
                error,
                kind,
                since,
                limit,
                cursor);
    }

    /**
     * The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
     * key has access to.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailureMembers tenant(String value) {
        return tenant(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tenant The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
     * key has access to.
     * @return a copy with it
     */
    public ListFailureMembers tenant(Field<String> tenant) {
        return new ListFailureMembers(
                namespace,
                tenant,
                destination,
                error,
                kind,
                since,
                limit,
                cursor);
    }

    /**
     * The URL that was called, without credentials and query.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailureMembers destination(String value) {
        return destination(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param destination The URL that was called, without credentials and query.
     * @return a copy with it
     */
    public ListFailureMembers destination(Field<String> destination) {
        return new ListFailureMembers(
                namespace,
                tenant,
                destination,
                error,
                kind,
                since,
                limit,
                cursor);
    }

    /**
     * The stable code of the last error, without details.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailureMembers error(String value) {
        return error(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param error The stable code of the last error, without details.
     * @return a copy with it
     */
    public ListFailureMembers error(Field<String> error) {
        return new ListFailureMembers(
                namespace,
                tenant,
                destination,
                error,
                kind,
                since,
                limit,
                cursor);
    }

    /**
     * What failed.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailureMembers kind(FailedKind value) {
        return kind(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param kind What failed.
     * @return a copy with it
     */
    public ListFailureMembers kind(Field<FailedKind> kind) {
        return new ListFailureMembers(
                namespace,
                tenant,
                destination,
                error,
                kind,
                since,
                limit,
                cursor);
    }

    /**
     * Only failures since this instant.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailureMembers since(Instant value) {
        return since(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param since Only failures since this instant.
     * @return a copy with it
     */
    public ListFailureMembers since(Field<Instant> since) {
        return new ListFailureMembers(
                namespace,
                tenant,
                destination,
                error,
                kind,
                since,
                limit,
                cursor);
    }

    /**
     * Maximum number of failures on the page. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailureMembers limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of failures on the page. Default 100.
     * @return a copy with it
     */
    public ListFailureMembers limit(Field<Long> limit) {
        return new ListFailureMembers(
                namespace,
                tenant,
                destination,
                error,
                kind,
                since,
                limit,
                cursor);
    }

    /**
     * <code>nextCursor</code> of the previous page.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailureMembers cursor(String value) {
        return cursor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cursor <code>nextCursor</code> of the previous page.
     * @return a copy with it
     */
    public ListFailureMembers cursor(Field<String> cursor) {
        return new ListFailureMembers(
                namespace,
                tenant,
                destination,
                error,
                kind,
                since,
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
        namespace.putInto(sent, "namespace", Json::of);
        tenant.putInto(sent, "tenant", Json::of);
        destination.putInto(sent, "destination", Json::of);
        error.putInto(sent, "error", Json::of);
        kind.putInto(sent, "kind", FailedKind::toJson);
        since.putInto(sent, "since", Values::toJson);
        limit.putInto(sent, "limit", Json::of);
        cursor.putInto(sent, "cursor", Json::of);
        return Json.object(sent);
    }
}