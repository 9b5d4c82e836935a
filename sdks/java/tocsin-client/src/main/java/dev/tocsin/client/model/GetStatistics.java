// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Which slots to return.
 *
 * @param namespace A namespace, or <code>*</code> for all that the key has access to. Default <code>*</code>.
 * @param from The first slot is the one with this instant. Default: one hour before <code>to</code>, with
 * tenMinutes one day.
 * @param to Only slots that begin before this instant. Default: now.
 * @param resolution <code>minute</code> reaches back 24 hours, <code>tenMinutes</code> 30 days. Default
 * <code>minute</code>.
 */
public record GetStatistics(
        Field<String> namespace,
        Field<Instant> from,
        Field<Instant> to,
        Field<StatisticsResolution> resolution) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static GetStatistics of() {
        return new GetStatistics(
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * A namespace, or <code>*</code> for all that the key has access to. Default <code>*</code>.
     *
     * @param value its value
     * @return a copy with it
     */
    public GetStatistics namespace(String value) {
        return namespace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param namespace A namespace, or <code>*</code> for all that the key has access to. Default <code>*</code>.
     * @return a copy with it
     */
    public GetStatistics namespace(Field<String> namespace) {
        return new GetStatistics(
                namespace,
                from,
                to,
                resolution);
    }

    /**
     * The first slot is the one with this instant. Default: one hour before <code>to</code>, with
     * tenMinutes one day.
     *
     * @param value its value
     * @return a copy with it
     */
    public GetStatistics from(Instant value) {
        return from(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param from The first slot is the one with this instant. Default: one hour before <code>to</code>, with
     * tenMinutes one day.
     * @return a copy with it
     */
    public GetStatistics from(Field<Instant> from) {
        return new GetStatistics(
                namespace,
                from,
                to,
                resolution);
    }

    /**
     * Only slots that begin before this instant. Default: now.
     *
     * @param value its value
     * @return a copy with it
     */
    public GetStatistics to(Instant value) {
        return to(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param to Only slots that begin before this instant. Default: now.
     * @return a copy with it
     */
    public GetStatistics to(Field<Instant> to) {
        return new GetStatistics(
                namespace,
                from,
                to,
                resolution);
    }

    /**
     * <code>minute</code> reaches back 24 hours, <code>tenMinutes</code> 30 days. Default
     * <code>minute</code>.
     *
     * @param value its value
     * @return a copy with it
     */
    public GetStatistics resolution(StatisticsResolution value) {
        return resolution(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param resolution <code>minute</code> reaches back 24 hours, <code>tenMinutes</code> 30 days. Default
     * <code>minute</code>.
     * @return a copy with it
     */
    public GetStatistics resolution(Field<StatisticsResolution> resolution) {
        return new GetStatistics(
                namespace,
                from,
                to,
                resolution);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        namespace.putInto(sent, "namespace", Json::of);
        from.putInto(sent, "from", Values::toJson);
        to.putInto(sent, "to", Values::toJson);
        resolution.putInto(sent, "resolution", StatisticsResolution::toJson);
        return Json.object(sent);
    }
}