// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import org.jspecify.annotations.Nullable;

/**
 * A row that could not be changed, and why. It has a namespace or a tenant.
 *
 * @param id id
 * @param error error
 * @param namespace namespace Null if absent.
 * @param tenant tenant Null if absent.
 */
public record JobFailure(
        String id,
        String error,
        @Nullable String namespace,
        @Nullable String tenant) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static JobFailure fromJson(Json source) {
        return new JobFailure(
                source.read("id", Json::asString),
                source.read("error", Json::asString),
                source.readOptional("namespace", Json::asString),
                source.readOptional("tenant", Json::asString));
    }
}