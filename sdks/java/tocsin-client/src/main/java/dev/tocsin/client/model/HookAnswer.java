// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Where notifications are sent.
 *
 * @param url The URL; its secrets are [redacted].
 * @param headers Additional headers; secret values are [redacted]. Null if absent.
 * @param credential The credential that the notification has. Null if absent.
 */
public record HookAnswer(
        String url,
        @Nullable Map<String, String> headers,
        @Nullable String credential) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static HookAnswer fromJson(Json source) {
        return new HookAnswer(
                source.read("url", Json::asString),
                source.readOptional("headers", json -> json.asMap(Json::asString)),
                source.readOptional("credential", Json::asString));
    }
}