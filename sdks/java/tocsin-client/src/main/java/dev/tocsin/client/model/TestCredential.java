// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A credential to try.
 *
 * @param namespace The namespace's name.
 * @param name The credential's name, unique in its namespace.
 * @param url A URL to which it may go. HEAD is sent there with it.
 */
public record TestCredential(
        String namespace,
        String name,
        Field<String> url) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param name The credential's name, unique in its namespace.
     * @return the request
     */
    public static TestCredential of(String namespace, String name) {
        return new TestCredential(
                namespace,
                name,
                Field.absent());
    }

    /**
     * A URL to which it may go. HEAD is sent there with it.
     *
     * @param value its value
     * @return a copy with it
     */
    public TestCredential url(String value) {
        return url(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param url A URL to which it may go. HEAD is sent there with it.
     * @return a copy with it
     */
    public TestCredential url(Field<String> url) {
        return new TestCredential(
                namespace,
                name,
                url);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("name", Json.of(name));
        url.putInto(sent, "url", Json::of);
        return Json.object(sent);
    }
}