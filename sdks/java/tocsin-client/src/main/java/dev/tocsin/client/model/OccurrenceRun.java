// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One occurrence with its attempts. <code>pending</code> is the current one. <code>missed</code>:
 * instants that did not fire, with no occurrence before them.
 *
 * @param run Its name, which is part of the webhook-id of its attempts.
 * @param instant An RFC 3339 instant with a time zone.
 * @param status status
 * @param attempts Number of attempts made, of which the latest are kept.
 * @param attemptLog The latest attempts, oldest first.
 * @param missed Instants between this occurrence and the next that did not fire; excluded ones are before it.
 * @param source Why it fired: regular, trigger, backfill or replay; absent if it did not. Null if absent.
 */
public record OccurrenceRun(
        String run,
        Instant instant,
        RunStatus status,
        long attempts,
        List<Attempt> attemptLog,
        List<MissedRange> missed,
        @Nullable OccurrenceSource source) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static OccurrenceRun fromJson(Json source) {
        return new OccurrenceRun(
                source.read("run", Json::asString),
                source.read("instant", Values::toInstant),
                source.read("status", RunStatus::fromJson),
                source.read("attempts", Json::asLong),
                source.read("attemptLog", json -> json.asList(Attempt::fromJson)),
                source.read("missed", json -> json.asList(MissedRange::fromJson)),
                source.readOptional("source", OccurrenceSource::fromJson));
    }
}