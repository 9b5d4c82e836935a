// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The HTTP request to make.
 *
 * @param method The method of the request.
 * @param url The http or https URL.
 * @param headers The request's headers.
 * @param body Any JSON: a string is sent as plain text, any other value as JSON. At most 102400 bytes. Not with
 * GET and HEAD.
 * @param retryPolicy When a failed attempt is retried. Without a policy, or with null, there is a single attempt: a
 * service may not tolerate repeated requests. Omitted members get their defaults when the call is
 * submitted.
 * @param credential The credential that the request has: one of the namespace that
 * <code>agent.credentials_namespace</code> names, in which the client's key has to have the role
 * write. It goes to no other origin than the credential's own.
 */
public record RequestSpec(
        ServiceCallMethod method,
        String url,
        Field<Map<String, String>> headers,
        Field<Json> body,
        Field<RetryPolicy> retryPolicy,
        Field<String> credential) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param method The method of the request.
     * @param url The http or https URL.
     * @return the request
     */
    public static RequestSpec of(ServiceCallMethod method, String url) {
        return new RequestSpec(
                method,
                url,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * The request's headers.
     *
     * @param value its value
     * @return a copy with it
     */
    public RequestSpec headers(Map<String, String> value) {
        return headers(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param headers The request's headers.
     * @return a copy with it
     */
    public RequestSpec headers(Field<Map<String, String>> headers) {
        return new RequestSpec(
                method,
                url,
                headers,
                body,
                retryPolicy,
                credential);
    }

    /**
     * Any JSON: a string is sent as plain text, any other value as JSON. At most 102400 bytes. Not with
     * GET and HEAD.
     *
     * @param value its value
     * @return a copy with it
     */
    public RequestSpec body(Json value) {
        return body(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param body Any JSON: a string is sent as plain text, any other value as JSON. At most 102400 bytes. Not with
     * GET and HEAD.
     * @return a copy with it
     */
    public RequestSpec body(Field<Json> body) {
        return new RequestSpec(
                method,
                url,
                headers,
                body,
                retryPolicy,
                credential);
    }

    /**
     * When a failed attempt is retried. Without a policy, or with null, there is a single attempt: a
     * service may not tolerate repeated requests. Omitted members get their defaults when the call is
     * submitted.
     *
     * @param value its value
     * @return a copy with it
     */
    public RequestSpec retryPolicy(RetryPolicy value) {
        return retryPolicy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param retryPolicy When a failed attempt is retried. Without a policy, or with null, there is a single attempt: a
     * service may not tolerate repeated requests. Omitted members get their defaults when the call is
     * submitted.
     * @return a copy with it
     */
    public RequestSpec retryPolicy(Field<RetryPolicy> retryPolicy) {
        return new RequestSpec(
                method,
                url,
                headers,
                body,
                retryPolicy,
                credential);
    }

    /**
     * The credential that the request has: one of the namespace that
     * <code>agent.credentials_namespace</code> names, in which the client's key has to have the role
     * write. It goes to no other origin than the credential's own.
     *
     * @param value its value
     * @return a copy with it
     */
    public RequestSpec credential(String value) {
        return credential(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param credential The credential that the request has: one of the namespace that
     * <code>agent.credentials_namespace</code> names, in which the client's key has to have the role
     * write. It goes to no other origin than the credential's own.
     * @return a copy with it
     */
    public RequestSpec credential(Field<String> credential) {
        return new RequestSpec(
                method,
                url,
                headers,
                body,
                retryPolicy,
                credential);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("method", method.toJson());
        sent.put("url", Json.of(url));
        headers.putInto(sent, "headers", each -> Json.object(each, Json::of));
        body.putInto(sent, "body", value -> value);
        retryPolicy.putInto(sent, "retryPolicy", RetryPolicy::toJson);
        credential.putInto(sent, "credential", Json::of);
        return Json.object(sent);
    }
}