// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Which jobs are listed.
 *
 * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
 * @param tenant The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
 * key has access to.
 */
public record ListJobs(
        Field<String> namespace,
        Field<String> tenant) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static ListJobs all() {
        return new ListJobs(
                Field.absent(),
                Field.absent());
    }

    /**
     * The namespace's name; <code>*</code>: all that the API key has access to.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListJobs namespace(String value) {
        return namespace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
     * @return a copy with it
     */
    public ListJobs namespace(Field<String> namespace) {
        return new ListJobs(
                namespace,
                tenant);
    }

    /**
     * The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
     * key has access to.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListJobs tenant(String value) {
        return tenant(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tenant The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
     * key has access to.
     * @return a copy with it
     */
    public ListJobs tenant(Field<String> tenant) {
        return new ListJobs(
                namespace,
                tenant);
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
        return Json.object(sent);
    }
}