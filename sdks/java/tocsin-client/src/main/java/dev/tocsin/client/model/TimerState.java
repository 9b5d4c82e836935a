// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * Where a timer is. <code>scheduled</code>, <code>retrying</code>: its instant, or that of its next
 * attempt, is in the future. <code>waiting</code>: it is due and waits for its turn.
 * <code>firing</code>: an attempt is in flight. <code>writing</code>: a result or a change is being
 * stored. <code>paused</code>: its namespace is paused, or is being deleted. <code>suspended</code>:
 * its stored record can't be read, or the settings of the node that owns its shard forbid the address
 * that its URL leads to. <code>blocked</code>: it is due, and no node fires it now.
 * <code>unknown</code>: it is due, and the owner of its shard could not be asked.
 * <code>finished</code>: it has its final status. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record TimerState(String value) implements OpenEnum {
    /** scheduled. */
    public static final TimerState SCHEDULED = new TimerState("scheduled");

    /** retrying. */
    public static final TimerState RETRYING = new TimerState("retrying");

    /** waiting. */
    public static final TimerState WAITING = new TimerState("waiting");

    /** firing. */
    public static final TimerState FIRING = new TimerState("firing");

    /** writing. */
    public static final TimerState WRITING = new TimerState("writing");

    /** paused. */
    public static final TimerState PAUSED = new TimerState("paused");

    /** suspended. */
    public static final TimerState SUSPENDED = new TimerState("suspended");

    /** blocked. */
    public static final TimerState BLOCKED = new TimerState("blocked");

    /** unknown. */
    public static final TimerState UNKNOWN = new TimerState("unknown");

    /** finished. */
    public static final TimerState FINISHED = new TimerState("finished");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static TimerState fromJson(Json source) {
        return new TimerState(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}