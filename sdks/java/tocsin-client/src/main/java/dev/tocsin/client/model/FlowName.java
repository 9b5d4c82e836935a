// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Names a rule.
 *
 * @param namespace The namespace's name.
 * @param match The flow key that the rule is for, or a prefix of keys, which ends with a colon.
 */
public record FlowName(
        String namespace,
        String match) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param match The flow key that the rule is for, or a prefix of keys, which ends with a colon.
     * @return the request
     */
    public static FlowName of(String namespace, String match) {
        return new FlowName(
                namespace,
                match);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("match", Json.of(match));
        return Json.object(sent);
    }
}