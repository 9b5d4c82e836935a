// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What has to happen before the timer moves on. <code>instant</code>: its time.
 * <code>destination</code>, <code>namespace</code>, <code>node</code>: a free slot there; a paused
 * namespace: that it is resumed. <code>flow</code>: a slot or a token of its flow, or of its
 * namespace's limits; a paused flow: that it is resumed. <code>response</code>: that of the receiver.
 * <code>write</code>: that results or changes are stored. <code>lease</code>, <code>clock</code>: that
 * of the node that owns its shard. <code>owner</code>: a node that owns its shard.
 * <code>create</code>: that a client creates it again. <code>egress</code>: that the settings permit
 * its address, or its URL leads elsewhere. <code>secret</code>: the key under which one of its secrets
 * is encrypted. <code>credential</code>: that its credential can be sent: it has a token, exists, and
 * may go to the URL. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record TimerWaitsFor(String value) implements OpenEnum {
    /** instant. */
    public static final TimerWaitsFor INSTANT = new TimerWaitsFor("instant");

    /** destination. */
    public static final TimerWaitsFor DESTINATION = new TimerWaitsFor("destination");

    /** namespace. */
    public static final TimerWaitsFor NAMESPACE = new TimerWaitsFor("namespace");

    /** node. */
    public static final TimerWaitsFor NODE = new TimerWaitsFor("node");

    /** flow. */
    public static final TimerWaitsFor FLOW = new TimerWaitsFor("flow");

    /** response. */
    public static final TimerWaitsFor RESPONSE = new TimerWaitsFor("response");

    /** write. */
    public static final TimerWaitsFor WRITE = new TimerWaitsFor("write");

    /** lease. */
    public static final TimerWaitsFor LEASE = new TimerWaitsFor("lease");

    /** clock. */
    public static final TimerWaitsFor CLOCK = new TimerWaitsFor("clock");

    /** owner. */
    public static final TimerWaitsFor OWNER = new TimerWaitsFor("owner");

    /** create. */
    public static final TimerWaitsFor CREATE = new TimerWaitsFor("create");

    /** egress. */
    public static final TimerWaitsFor EGRESS = new TimerWaitsFor("egress");

    /** secret. */
    public static final TimerWaitsFor SECRET = new TimerWaitsFor("secret");

    /** credential. */
    public static final TimerWaitsFor CREDENTIAL = new TimerWaitsFor("credential");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static TimerWaitsFor fromJson(Json source) {
        return new TimerWaitsFor(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}