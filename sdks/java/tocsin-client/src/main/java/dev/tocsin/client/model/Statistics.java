// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;

/**
 * Slots in which something happened, the earliest first, and over all of them the failing
 * destinations, those with the most failures first, and the outages, the latest first.
 *
 * @param from The start of the first slot; later than asked for if that is not kept any more.
 * @param to The end of the range.
 * @param resolution resolution
 * @param slots slots
 * @param failing failing
 * @param outages outages
 */
public record Statistics(
        Instant from,
        Instant to,
        StatisticsResolution resolution,
        List<StatisticsSlot> slots,
        List<FailingDestination> failing,
        List<Outage> outages) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Statistics fromJson(Json source) {
        return new Statistics(
                source.read("from", Values::toInstant),
                source.read("to", Values::toInstant),
                source.read("resolution", StatisticsResolution::fromJson),
                source.read("slots", json -> json.asList(StatisticsSlot::fromJson)),
                source.read("failing", json -> json.asList(FailingDestination::fromJson)),
                source.read("outages", json -> json.asList(Outage::fromJson)));
    }
}