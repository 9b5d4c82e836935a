// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * What happened in a slot of time. Attempts are counted by their outcome, as <code>completed</code>,
 * <code>rescheduled</code>, <code>retried</code>, <code>failed</code> or <code>superseded</code> (the
 * timer was changed meanwhile).
 *
 * @param at The start of the slot.
 * @param created Timers created or replaced.
 * @param updated Timers updated.
 * @param canceled Timers deleted while they were pending.
 * @param attempts Attempts that ended.
 * @param completed Attempts after which the timer was completed.
 * @param rescheduled Attempts whose receiver moved the timer.
 * @param retried Attempts that failed and were followed by another.
 * @param failed Attempts after which the timer had failed.
 * @param superseded Attempts whose result no longer counted.
 * @param expired Timers that ended because their <code>expireAfter</code> had passed.
 * @param late Attempts that began more than a second after their instant.
 * @param lagP50Ms Median of the lag, in ms; null without attempts. Null if absent.
 * @param lagP99Ms 99th percentile of the lag, in ms; too high by at most a half. Null without attempts. Null if absent.
 * @param lagMaxMs The greatest lag, in ms; null without attempts. Null if absent.
 */
public record StatisticsSlot(
        Instant at,
        long created,
        long updated,
        long canceled,
        long attempts,
        long completed,
        long rescheduled,
        long retried,
        long failed,
        long superseded,
        long expired,
        long late,
        @Nullable Double lagP50Ms,
        @Nullable Double lagP99Ms,
        @Nullable Double lagMaxMs) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static StatisticsSlot fromJson(Json source) {
        return new StatisticsSlot(
                source.read("at", Values::toInstant),
                source.read("created", Json::asLong),
                source.read("updated", Json::asLong),
                source.read("canceled", Json::asLong),
                source.read("attempts", Json::asLong),
                source.read("completed", Json::asLong),
                source.read("rescheduled", Json::asLong),
                source.read("retried", Json::asLong),
                source.read("failed", Json::asLong),
                source.read("superseded", Json::asLong),
                source.read("expired", Json::asLong),
                source.read("late", Json::asLong),
                source.readNullable("lagP50Ms", Json::asDouble),
                source.readNullable("lagP99Ms", Json::asDouble),
                source.readNullable("lagMaxMs", Json::asDouble));
    }
}