// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Where a notification of a service call is sent, signed like a callback.
 *
 * @param url The http or https URL, or <code>nats://subject</code>, to notify.
 * @param headers Additional headers of the notification. The value [redacted] keeps the stored value.
 * @param credential The credential that the notification has: of the namespace; for service calls, of that which
 * <code>agent.credentials_namespace</code> names.
 */
public record CallHook(
        String url,
        Field<Map<String, String>> headers,
        Field<String> credential) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param url The http or https URL, or <code>nats://subject</code>, to notify.
     * @return the request
     */
    public static CallHook of(String url) {
        return new CallHook(
                url,
                Field.absent(),
                Field.absent());
    }

    /**
     * Additional headers of the notification. The value [redacted] keeps the stored value.
     *
     * @param value its value
     * @return a copy with it
     */
    public CallHook headers(Map<String, String> value) {
        return headers(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param headers Additional headers of the notification. The value [redacted] keeps the stored value.
     * @return a copy with it
     */
    public CallHook headers(Field<Map<String, String>> headers) {
        return new CallHook(
                url,
                headers,
                credential);
    }

    /**
     * The credential that the notification has: of the namespace; for service calls, of that which
     * <code>agent.credentials_namespace</code> names.
     *
     * @param value its value
     * @return a copy with it
     */
    public CallHook credential(String value) {
        return credential(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param credential The credential that the notification has: of the namespace; for service calls, of that which
     * <code>agent.credentials_namespace</code> names.
     * @return a copy with it
     */
    public CallHook credential(Field<String> credential) {
        return new CallHook(
                url,
                headers,
                credential);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("url", Json.of(url));
        headers.putInto(sent, "headers", each -> Json.object(each, Json::of));
        credential.putInto(sent, "credential", Json::of);
        return Json.object(sent);
    }
}