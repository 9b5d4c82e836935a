// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Limits of attempts; send a rate, a parallelism, or both. In any time at most <code>burst</code>
 * attempts begin, and those of the rate.
 *
 * @param rate rate
 * @param burst How many attempts may begin at once if none did for a while. Requires a rate; default 1: they are
 * evenly spaced.
 * @param parallelism How many attempts may be in flight at once.
 * @param ordered Whether the timers of each key begin one at a time, in the order of their instants, each when the
 * one before has ended, retries included. Only in <code>perKey</code>, without another parallelism
 * than 1, and in a namespace with <code>numShards</code> 1. Default false.
 */
public record FlowLimits(
        Field<FlowRate> rate,
        Field<Long> burst,
        Field<Long> parallelism,
        Field<Boolean> ordered) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static FlowLimits of() {
        return new FlowLimits(
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * rate
     *
     * @param value its value
     * @return a copy with it
     */
    public FlowLimits rate(FlowRate value) {
        return rate(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param rate rate
     * @return a copy with it
     */
    public FlowLimits rate(Field<FlowRate> rate) {
        return new FlowLimits(
                rate,
                burst,
                parallelism,
                ordered);
    }

    /**
     * How many attempts may begin at once if none did for a while. Requires a rate; default 1: they are
     * evenly spaced.
     *
     * @param value its value
     * @return a copy with it
     */
    public FlowLimits burst(long value) {
        return burst(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param burst How many attempts may begin at once if none did for a while. Requires a rate; default 1: they are
     * evenly spaced.
     * @return a copy with it
     */
    public FlowLimits burst(Field<Long> burst) {
        return new FlowLimits(
                rate,
                burst,
                parallelism,
                ordered);
    }

    /**
     * How many attempts may be in flight at once.
     *
     * @param value its value
     * @return a copy with it
     */
    public FlowLimits parallelism(long value) {
        return parallelism(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param parallelism How many attempts may be in flight at once.
     * @return a copy with it
     */
    public FlowLimits parallelism(Field<Long> parallelism) {
        return new FlowLimits(
                rate,
                burst,
                parallelism,
                ordered);
    }

    /**
     * Whether the timers of each key begin one at a time, in the order of their instants, each when the
     * one before has ended, retries included. Only in <code>perKey</code>, without another parallelism
     * than 1, and in a namespace with <code>numShards</code> 1. Default false.
     *
     * @param value its value
     * @return a copy with it
     */
    public FlowLimits ordered(boolean value) {
        return ordered(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param ordered Whether the timers of each key begin one at a time, in the order of their instants, each when the
     * one before has ended, retries included. Only in <code>perKey</code>, without another parallelism
     * than 1, and in a namespace with <code>numShards</code> 1. Default false.
     * @return a copy with it
     */
    public FlowLimits ordered(Field<Boolean> ordered) {
        return new FlowLimits(
                rate,
                burst,
                parallelism,
                ordered);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        rate.putInto(sent, "rate", FlowRate::toJson);
        burst.putInto(sent, "burst", Json::of);
        parallelism.putInto(sent, "parallelism", Json::of);
        ordered.putInto(sent, "ordered", Json::of);
        return Json.object(sent);
    }
}