// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A page of credentials, by name. A page without <code>nextCursor</code> is the last.
 *
 * @param credentials credentials
 * @param nextCursor <code>nextCursor</code> of the previous page. Null if absent.
 */
public record CredentialPage(
        List<Credential> credentials,
        @Nullable String nextCursor) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static CredentialPage fromJson(Json source) {
        return new CredentialPage(
                source.read("credentials", json -> json.asList(Credential::fromJson)),
                source.readOptional("nextCursor", Json::asString));
    }
}