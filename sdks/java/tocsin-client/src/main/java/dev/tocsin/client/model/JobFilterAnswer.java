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
 * @param destination A part of the URL's host and path; case does not matter. Of failures: the destination of a group. Null if absent.
 * @param error A part of the last error; case does not matter. Of failures: the error of a group. Of timers and
 * failures only. Null if absent.
 * @param executeAfter Only timers and service calls due at or after this instant, or failures of such runs. Null if absent.
 * @param executeBefore Only timers and service calls due before this instant, or failures of such runs. Null if absent.
 * @param kind Only failures of this kind. Of failures only. Null if absent.
 * @param createdAfter Only rows created at or after this instant: failed then, or submitted if it is a service call. Null if absent.
 * @param name A part of the name, with letters A to Z in either case. Of service calls only. Null if absent.
 * @param status Only calls that wait for this. Of service calls only. Null if absent.
 */
public record JobFilterAnswer(
        String createdBefore,
        @Nullable List<String> tags,
        @Nullable String idPrefix,
        @Nullable String destination,
        @Nullable String error,
        @Nullable String executeAfter,
        @Nullable String executeBefore,
        @Nullable FailedKind kind,
        @Nullable String createdAfter,
        @Nullable String name,
        @Nullable WaitingStatus status) {

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
                source.readOptional("kind", FailedKind::fromJson),
                source.readOptional("createdAfter", Json::asString),
                source.readOptional("name", Json::asString),
                source.readOptional("status", WaitingStatus::fromJson));
    }
}