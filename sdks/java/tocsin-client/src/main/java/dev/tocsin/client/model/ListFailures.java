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
 * Which failures to group, and how.
 *
 * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
 * @param tenant The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
 * key has access to.
 * @param since Only failures since this instant.
 * @param groupBy What the failures of a group have in common. Default: all of these.
 * @param limit Maximum number of groups. Default 50.
 */
public record ListFailures(
        Field<String> namespace,
        Field<String> tenant,
        Field<Instant> since,
        Field<List<FailureGroupedBy>> groupBy,
        Field<Long> limit) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static ListFailures all() {
        return new ListFailures(
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
    public ListFailures namespace(String value) {
        return namespace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
     * @return a copy with it
     */
    public ListFailures namespace(Field<String> namespace) {
        return new ListFailures(
                namespace,
                tenant,
                since,
                groupBy,
                limit);
    }

    /**
     * The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
     * key has access to.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailures tenant(String value) {
        return tenant(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tenant The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
     * key has access to.
     * @return a copy with it
     */
    public ListFailures tenant(Field<String> tenant) {
        return new ListFailures(
                namespace,
                tenant,
                since,
                groupBy,
                limit);
    }

    /**
     * Only failures since this instant.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailures since(Instant value) {
        return since(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param since Only failures since this instant.
     * @return a copy with it
     */
    public ListFailures since(Field<Instant> since) {
        return new ListFailures(
                namespace,
                tenant,
                since,
                groupBy,
                limit);
    }

    /**
     * What the failures of a group have in common. Default: all of these.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailures groupBy(List<FailureGroupedBy> value) {
        return groupBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param groupBy What the failures of a group have in common. Default: all of these.
     * @return a copy with it
     */
    public ListFailures groupBy(Field<List<FailureGroupedBy>> groupBy) {
        return new ListFailures(
                namespace,
                tenant,
                since,
                groupBy,
                limit);
    }

    /**
     * Maximum number of groups. Default 50.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFailures limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of groups. Default 50.
     * @return a copy with it
     */
    public ListFailures limit(Field<Long> limit) {
        return new ListFailures(
                namespace,
                tenant,
                since,
                groupBy,
                limit);
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
        since.putInto(sent, "since", Values::toJson);
        groupBy.putInto(sent, "groupBy", each -> Json.array(each, FailureGroupedBy::toJson));
        limit.putInto(sent, "limit", Json::of);
        return Json.object(sent);
    }
}