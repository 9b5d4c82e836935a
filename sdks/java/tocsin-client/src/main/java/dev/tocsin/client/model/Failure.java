// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A failed end that nobody has dealt with. Its details are in the history of the timer or schedule, or
 * in the execution log of the service call.
 *
 * @param failureId Names the failure in requests. Opaque.
 * @param kind What failed.
 * @param id The id of the timer, schedule or service call.
 * @param executeAt The instant of the run that failed.
 * @param failedAt When it failed.
 * @param destination The URL that was called, without credentials and query.
 * @param error The stable code of the last error, without details.
 * @param namespace The namespace; absent of service calls. Null if absent.
 * @param tenant The tenant; of service calls only. Null if absent.
 * @param name The display name of the service call. Null if absent.
 */
public record Failure(
        String failureId,
        FailedKind kind,
        String id,
        Instant executeAt,
        String failedAt,
        String destination,
        String error,
        @Nullable String namespace,
        @Nullable String tenant,
        @Nullable String name) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Failure fromJson(Json source) {
        return new Failure(
                source.read("failureId", Json::asString),
                source.read("kind", FailedKind::fromJson),
                source.read("id", Json::asString),
                source.read("executeAt", Values::toInstant),
                source.read("failedAt", Json::asString),
                source.read("destination", Json::asString),
                source.read("error", Json::asString),
                source.readOptional("namespace", Json::asString),
                source.readOptional("tenant", Json::asString),
                source.readOptional("name", Json::asString));
    }
}