// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;

/**
 * Failed attempts of one namespace at one path of a host.
 *
 * @param namespace namespace
 * @param destination Scheme, host and port.
 * @param path The path of the URL, without its query. Empty: several, counted together.
 * @param failures Attempts that failed.
 * @param exhausted Attempts after which the timer had failed, because it is not retried.
 * @param lastError The latest error.
 * @param lastAt The start of the latest slot with a failure, to ten seconds.
 */
public record FailingDestination(
        String namespace,
        String destination,
        String path,
        long failures,
        long exhausted,
        String lastError,
        Instant lastAt) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static FailingDestination fromJson(Json source) {
        return new FailingDestination(
                source.read("namespace", Json::asString),
                source.read("destination", Json::asString),
                source.read("path", Json::asString),
                source.read("failures", Json::asLong),
                source.read("exhausted", Json::asLong),
                source.read("lastError", Json::asString),
                source.read("lastAt", Values::toInstant));
    }
}