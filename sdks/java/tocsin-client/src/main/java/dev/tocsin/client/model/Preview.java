// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;

/**
 * The next instants, fewer than asked for if there are no more.
 *
 * @param instants The next instants, in UTC. Those of a schedule include its jitter.
 * @param sentence When it runs, in words.
 * @param excluded The instants until the last of these that don't fire, and why; with onSkipped next those that move.
 * At most 100.
 */
public record Preview(
        List<Instant> instants,
        String sentence,
        List<ExcludedInstant> excluded) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Preview fromJson(Json source) {
        return new Preview(
                source.read("instants", json -> json.asList(Values::toInstant)),
                source.read("sentence", Json::asString),
                source.read("excluded", json -> json.asList(ExcludedInstant::fromJson)));
    }
}