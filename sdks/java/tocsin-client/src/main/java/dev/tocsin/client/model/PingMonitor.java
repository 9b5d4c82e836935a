// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A report of the monitor's job.
 *
 * @param namespace The namespace's name.
 * @param id The monitor's id, unique among its namespace's monitors.
 * @param event start, success or fail. Default success.
 * @param exitCode The job's exit code; any but 0 is a failure.
 * @param body What to keep with the period, such as the end of a log: the last 10240 bytes, without secrets.
 */
public record PingMonitor(
        String namespace,
        String id,
        Field<PingEvent> event,
        Field<Long> exitCode,
        Field<String> body) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param id The monitor's id, unique among its namespace's monitors.
     * @return the request
     */
    public static PingMonitor of(String namespace, String id) {
        return new PingMonitor(
                namespace,
                id,
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * start, success or fail. Default success.
     *
     * @param value its value
     * @return a copy with it
     */
    public PingMonitor event(PingEvent value) {
        return event(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param event start, success or fail. Default success.
     * @return a copy with it
     */
    public PingMonitor event(Field<PingEvent> event) {
        return new PingMonitor(
                namespace,
                id,
                event,
                exitCode,
                body);
    }

    /**
     * The job's exit code; any but 0 is a failure.
     *
     * @param value its value
     * @return a copy with it
     */
    public PingMonitor exitCode(long value) {
        return exitCode(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param exitCode The job's exit code; any but 0 is a failure.
     * @return a copy with it
     */
    public PingMonitor exitCode(Field<Long> exitCode) {
        return new PingMonitor(
                namespace,
                id,
                event,
                exitCode,
                body);
    }

    /**
     * What to keep with the period, such as the end of a log: the last 10240 bytes, without secrets.
     *
     * @param value its value
     * @return a copy with it
     */
    public PingMonitor body(String value) {
        return body(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param body What to keep with the period, such as the end of a log: the last 10240 bytes, without secrets.
     * @return a copy with it
     */
    public PingMonitor body(Field<String> body) {
        return new PingMonitor(
                namespace,
                id,
                event,
                exitCode,
                body);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("id", Json.of(id));
        event.putInto(sent, "event", PingEvent::toJson);
        exitCode.putInto(sent, "exitCode", Json::of);
        body.putInto(sent, "body", Json::of);
        return Json.object(sent);
    }
}