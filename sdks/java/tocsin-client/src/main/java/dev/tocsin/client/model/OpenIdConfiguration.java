// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;

/**
 * What receivers need to know of the issuer (OpenID Connect Discovery 1.0). Nobody signs in here.
 *
 * @param issuer The <code>iss</code> of each JWT: the setting <code>public_url</code>.
 * @param jwks_uri Where its keys are.
 * @param response_types_supported response_types_supported
 * @param subject_types_supported subject_types_supported
 * @param id_token_signing_alg_values_supported id_token_signing_alg_values_supported
 */
public record OpenIdConfiguration(
        String issuer,
        String jwks_uri,
        List<String> response_types_supported,
        List<String> subject_types_supported,
        List<String> id_token_signing_alg_values_supported) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static OpenIdConfiguration fromJson(Json source) {
        return new OpenIdConfiguration(
                source.read("issuer", Json::asString),
                source.read("jwks_uri", Json::asString),
                source.read("response_types_supported", json -> json.asList(Json::asString)),
                source.read("subject_types_supported", json -> json.asList(Json::asString)),
                source.read("id_token_signing_alg_values_supported", json -> json.asList(Json::asString)));
    }
}