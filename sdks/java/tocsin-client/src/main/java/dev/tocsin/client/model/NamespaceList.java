// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;

/**
 * All namespaces that the key has access to, sorted by name.
 *
 * @param namespaces namespaces
 */
public record NamespaceList(
        List<Namespace> namespaces) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static NamespaceList fromJson(Json source) {
        return new NamespaceList(
                source.read("namespaces", json -> json.asList(Namespace::fromJson)));
    }
}