// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * A step of a test.
 *
 * @param what What was tried: secret, token, connection or request.
 * @param target Where, or of which credential.
 * @param ok Whether it succeeded.
 * @param detail What happened.
 */
public record TestStep(
        String what,
        String target,
        boolean ok,
        String detail) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static TestStep fromJson(Json source) {
        return new TestStep(
                source.read("what", Json::asString),
                source.read("target", Json::asString),
                source.read("ok", Json::asBoolean),
                source.read("detail", Json::asString));
    }
}