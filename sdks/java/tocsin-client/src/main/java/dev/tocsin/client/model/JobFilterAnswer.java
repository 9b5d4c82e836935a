// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The filter of a job, with all instants resolved.
 *
 * @param createdBefore An RFC 3339 instant with a time zone.
 * @param tags A row must have all of these tags. Not of failures, but of service calls. Null if absent.
 * @param idPrefix Prefix of the ids. Null if absent.
 * @param destination A part of the callback's host and path; case does not matter. Of failures: the destination of a
 * group. Null if absent.
 * @param error A part of the last error; case does not matter. Of failures: the error of a group. Not of schedules. Null if absent.
 * @param executeAfter Only timers due at or after this instant, or failures of such runs. Null if absent.
 * @param executeBefore Only timers due before this instant, or failures of such runs. Null if absent.
 * @param kind Only failures of this kind. Of failures only. Null if absent.
 */
public record JobFilterAnswer(
        String createdBefore,
        @Nullable List<String> tags,
        @Nullable String idPrefix,
        @Nullable String destination,
        @Nullable String error,
        @Nullable String executeAfter,
        @Nullable String executeBefore,
        @Nullable FailedKind kind) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static JobFilterAnswer fromJson(Json source) {
        return new JobFilterAnswer(
                source.read("createdBefore", Json::asString),
                source.readOptional("tags", json -> json.asList(Json::asString)),
                source.readOptional("idPrefix", Json::asString),
                source.readOptional("destination", Json::asString),
                source.readOptional("error", Json::asString),
                source.readOptional("executeAfter", Json::asString),
                source.readOptional("executeBefore", Json::asString),
                source.readOptional("kind", FailedKind::fromJson));
    }
}