// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One run: what became of one instant of the timer. <code>pending</code> is the current run. After
 * <code>rescheduled</code> and <code>superseded</code> the timer went on, because its receiver asked
 * for another instant, or a client gave it one or created it again.
 *
 * @param run The run's name, which is part of the webhook-id of its attempts.
 * @param executeAt An RFC 3339 instant with a time zone.
 * @param status status
 * @param attempts Number of attempts made, of which the latest are kept.
 * @param attemptLog The latest attempts, oldest first.
 * @param replay <code>true</code>: it is a replay of the run before it with the same name. Absent otherwise. Null if absent.
 */
public record RunAnswer(
        String run,
        Instant executeAt,
        RunStatus status,
        long attempts,
        List<Attempt> attemptLog,
        @Nullable Boolean replay) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static RunAnswer fromJson(Json source) {
        return new RunAnswer(
                source.read("run", Json::asString),
                source.read("executeAt", Values::toInstant),
                source.read("status", RunStatus::fromJson),
                source.read("attempts", Json::asLong),
                source.read("attemptLog", json -> json.asList(Attempt::fromJson)),
                source.readOptional("replay", Json::asBoolean));
    }
}