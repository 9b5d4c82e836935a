// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A period, or several in a row that nobody has reported.
 *
 * @param expectedAt When its report was expected.
 * @param deadline Until when a report was in time.
 * @param state onTime; late (after the deadline); missed (none came); failed; excused (it may have come while
 * Tocsin could not take it, and nobody was notified).
 * @param periods How many periods, from expectedAt on. Absent: one. Null if absent.
 * @param startedAt An RFC 3339 instant with a time zone. Null if absent.
 * @param endedAt An RFC 3339 instant with a time zone. Null if absent.
 * @param durationMs How long the job took. Null if absent.
 * @param exitCode The exit code that it reported. Null if absent.
 * @param body What it sent, without secrets. Null if absent.
 * @param note Why it is excused, was missed, or has failed. Null if absent.
 */
public record MonitorPeriod(
        String expectedAt,
        String deadline,
        PeriodState state,
        @Nullable Long periods,
        @Nullable Instant startedAt,
        @Nullable String endedAt,
        @Nullable Double durationMs,
        @Nullable Long exitCode,
        @Nullable String body,
        @Nullable String note) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static MonitorPeriod fromJson(Json source) {
        return new MonitorPeriod(
                source.read("expectedAt", Json::asString),
                source.read("deadline", Json::asString),
                source.read("state", PeriodState::fromJson),
                source.readOptional("periods", Json::asLong),
                source.readOptional("startedAt", Values::toInstant),
                source.readOptional("endedAt", Json::asString),
                source.readOptional("durationMs", Json::asDouble),
                source.readOptional("exitCode", Json::asLong),
                source.readOptional("body", Json::asString),
                source.readOptional("note", Json::asString));
    }
}