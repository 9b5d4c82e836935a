// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import org.jspecify.annotations.Nullable;

/**
 * How the call ended or, while it is Retrying, how its last attempt ended: the response, if there was
 * one, and the error, if it failed.
 *
 * @param responseMeta responseMeta Null if absent.
 * @param errorMeta errorMeta Null if absent.
 */
public record Outcome(
        @Nullable ResponseMeta responseMeta,
        @Nullable ErrorMeta errorMeta) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Outcome fromJson(Json source) {
        return new Outcome(
                source.readOptional("responseMeta", ResponseMeta::fromJson),
                source.readOptional("errorMeta", ErrorMeta::fromJson));
    }
}