// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;

/**
 * An occurrence that has ended.
 *
 * @param instant Its instant.
 * @param source Why it fired: its instant had come (regular), a trigger, a backfill, or a replay.
 * @param outcome How it ended: completed, failed or expired.
 * @param finishedAt An RFC 3339 instant with a time zone.
 * @param attempts Its attempts.
 */
public record Occurrence(
        Instant instant,
        OccurrenceSource source,
        String outcome,
        Instant finishedAt,
        long attempts) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Occurrence fromJson(Json source) {
        return new Occurrence(
                source.read("instant", Values::toInstant),
                source.read("source", OccurrenceSource::fromJson),
                source.read("outcome", Json::asString),
                source.read("finishedAt", Values::toInstant),
                source.read("attempts", Json::asLong));
    }
}