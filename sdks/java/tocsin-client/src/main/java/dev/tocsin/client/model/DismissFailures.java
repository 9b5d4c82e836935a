// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Which failures to remove from the list: by their ids, or those of a group.
 *
 * @param namespace The namespace's name.
 * @param tenant The tenant whose service calls are meant, instead of a namespace.
 * @param ids The failureId of each, up to 1,000.
 * @param destination The URL that was called, without credentials and query.
 * @param error The stable code of the last error, without details.
 * @param kind What failed.
 * @param all With <code>true</code> and no other field: all failures of it.
 */
public record DismissFailures(
        Field<String> namespace,
        Field<String> tenant,
        Field<List<String>> ids,
        Field<String> destination,
        Field<String> error,
        Field<FailedKind> kind,
        Field<Boolean> all) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static DismissFailures of() {
        return new DismissFailures(
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * The namespace's name.
     *
     * @param value its value
     * @return a copy with it
     */
    public DismissFailures namespace(String value) {
        return namespace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param namespace The namespace's name.
     * @return a copy with it
     */
    public DismissFailures namespace(Field<String> namespace) {
        return new DismissFailures(
                namespace,
                tenant,
                ids,
                destination,
                error,
                kind,
                all);
    }

    /**
     * The tenant whose service calls are meant, instead of a namespace.
     *
     * @param value its value
     * @return a copy with it
     */
    public DismissFailures tenant(String value) {
        return tenant(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tenant The tenant whose service calls are meant, instead of a namespace.
     * @return a copy with it
     */
    public DismissFailures tenant(Field<String> tenant) {
        return new DismissFailures(
                namespace,
                tenant,
                ids,
                destination,
                error,
                kind,
                all);
    }

    /**
     * The failureId of each, up to 1,000.
     *
     * @param value its value
     * @return a copy with it
     */
    public DismissFailures ids(List<String> value) {
        return ids(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param ids The failureId of each, up to 1,000.
     * @return a copy with it
     */
    public DismissFailures ids(Field<List<String>> ids) {
        return new DismissFailures(
                namespace,
                tenant,
                ids,
                destination,
                error,
                kind,
                all);
    }

    /**
     * The URL that was called, without credentials and query.
     *
     * @param value its value
     * @return a copy with it
     */
    public DismissFailures destination(String value) {
        return destination(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param destination The URL that was called, without credentials and query.
     * @return a copy with it
     */
    public DismissFailures destination(Field<String> destination) {
        return new DismissFailures(
                namespace,
                tenant,
                ids,
                destination,
                error,
                kind,
                all);
    }

    /**
     * The stable code of the last error, without details.
     *
     * @param value its value
     * @return a copy with it
     */
    public DismissFailures error(String value) {
        return error(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param error The stable code of the last error, without details.
     * @return a copy with it
     */
    public DismissFailures error(Field<String> error) {
        return new DismissFailures(
                namespace,
                tenant,
                ids,
                destination,
                error,
                kind,
                all);
    }

    /**
     * What failed.
     *
     * @param value its value
     * @return a copy with it
     */
    public DismissFailures kind(FailedKind value) {
        return kind(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param kind What failed.
     * @return a copy with it
     */
    public DismissFailures kind(Field<FailedKind> kind) {
        return new DismissFailures(
                namespace,
                tenant,
                ids,
                destination,
                error,
                kind,
                all);
    }

    /**
     * With <code>true</code> and no other field: all failures of it.
     *
     * @param value its value
     * @return a copy with it
     */
    public DismissFailures all(boolean value) {
        return all(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param all With <code>true</code> and no other field: all failures of it.
     * @return a copy with it
     */
    public DismissFailures all(Field<Boolean> all) {
        return new DismissFailures(
                namespace,
                tenant,
                ids,
                destination,
                error,
                kind,
                all);
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
        ids.putInto(sent, "ids", each -> Json.array(each, Json::of));
        destination.putInto(sent, "destination", Json::of);
        error.putInto(sent, "error", Json::of);
        kind.putInto(sent, "kind", FailedKind::toJson);
        all.putInto(sent, "all", Json::of);
        return Json.object(sent);
    }
}