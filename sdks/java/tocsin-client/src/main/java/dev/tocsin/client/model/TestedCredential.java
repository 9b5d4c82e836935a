// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;

/**
 * What became of the test of a credential.
 *
 * @param ok Whether all steps succeeded.
 * @param steps What was tried, up to the first step without which there is no other.
 */
public record TestedCredential(
        boolean ok,
        List<TestStep> steps) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static TestedCredential fromJson(Json source) {
        return new TestedCredential(
                source.read("ok", Json::asBoolean),
                source.read("steps", json -> json.asList(TestStep::fromJson)));
    }
}