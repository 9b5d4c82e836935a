// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import org.jspecify.annotations.Nullable;

/**
 * A callback's raw body, in one of the three forms.
 *
 * @param contentType contentType
 * @param json json Null if absent.
 * @param text text Null if absent.
 * @param base64 base64 Null if absent.
 */
public record RawBodyAnswer(
        String contentType,
        @Nullable Json json,
        @Nullable String text,
        @Nullable String base64) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static RawBodyAnswer fromJson(Json source) {
        return new RawBodyAnswer(
                source.read("contentType", Json::asString),
                source.readOptional("json", value -> value),
                source.readOptional("text", Json::asString),
                source.readOptional("base64", Json::asString));
    }
}