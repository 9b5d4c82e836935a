// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Finished timers to fire again, at once unless <code>executeAt</code> or <code>delay</code> is given.
 * Send at most one of these.
 *
 * @param namespace The namespace's name.
 * @param ids Ids of timers.
 * @param executeAt An RFC 3339 instant with a time zone.
 * @param delay A duration: 500ms, 30s, 5m, 1h30m, 7d.
 * @param setUrl The http or https URL to call from now on, instead of each timer's own.
 * @param setHeaders Additional headers of the callback from now on, instead of each timer's own; null: none. The value
 * [redacted] keeps the timer's stored value.
 */
public record ReplayTimers(
        String namespace,
        List<String> ids,
        Field<Instant> executeAt,
        Field<Duration> delay,
        Field<String> setUrl,
        Field<Map<String, String>> setHeaders) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param ids Ids of timers.
     * @return the request
     */
    public static ReplayTimers of(String namespace, List<String> ids) {
        return new ReplayTimers(
                namespace,
                ids,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * An RFC 3339 instant with a time zone.
     *
     * @param value its value
     * @return a copy with it
     */
    public ReplayTimers executeAt(Instant value) {
        return executeAt(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param executeAt An RFC 3339 instant with a time zone.
     * @return a copy with it
     */
    public ReplayTimers executeAt(Field<Instant> executeAt) {
        return new ReplayTimers(
                namespace,
                ids,
                executeAt,
                delay,
                setUrl,
                setHeaders);
    }

    /**
     * A duration: 500ms, 30s, 5m, 1h30m, 7d.
     *
     * @param value its value
     * @return a copy with it
     */
    public ReplayTimers delay(Duration value) {
        return delay(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param delay A duration: 500ms, 30s, 5m, 1h30m, 7d.
     * @return a copy with it
     */
    public ReplayTimers delay(Field<Duration> delay) {
        return new ReplayTimers(
                namespace,
                ids,
                executeAt,
                delay,
                setUrl,
                setHeaders);
    }

    /**
     * The http or https URL to call from now on, instead of each timer's own.
     *
     * @param value its value
     * @return a copy with it
     */
    public ReplayTimers setUrl(String value) {
        return setUrl(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param setUrl The http or https URL to call from now on, instead of each timer's own.
     * @return a copy with it
     */
    public ReplayTimers setUrl(Field<String> setUrl) {
        return new ReplayTimers(
                namespace,
                ids,
                executeAt,
                delay,
                setUrl,
                setHeaders);
    }

    /**
     * Additional headers of the callback from now on, instead of each timer's own; null: none. The value
     * [redacted] keeps the timer's stored value.
     *
     * @param value its value
     * @return a copy with it
     */
    public ReplayTimers setHeaders(Map<String, String> value) {
        return setHeaders(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param setHeaders Additional headers of the callback from now on, instead of each timer's own; null: none. The value
     * [redacted] keeps the timer's stored value.
     * @return a copy with it
     */
    public ReplayTimers setHeaders(Field<Map<String, String>> setHeaders) {
        return new ReplayTimers(
                namespace,
                ids,
                executeAt,
                delay,
                setUrl,
                setHeaders);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("ids", Json.array(ids, Json::of));
        executeAt.putInto(sent, "executeAt", Values::toJson);
        delay.putInto(sent, "delay", Values::toJson);
        setUrl.putInto(sent, "setUrl", Json::of);
        setHeaders.putInto(sent, "setHeaders", each -> Json.object(each, Json::of));
        return Json.object(sent);
    }
}