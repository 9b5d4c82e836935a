// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * How a request identifies itself. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record CredentialType(String value) implements OpenEnum {
    /** basic. */
    public static final CredentialType BASIC = new CredentialType("basic");

    /** bearer. */
    public static final CredentialType BEARER = new CredentialType("bearer");

    /** oauth2ClientCredentials. */
    public static final CredentialType OAUTH2_CLIENT_CREDENTIALS = new CredentialType("oauth2ClientCredentials");

    /** jwt. */
    public static final CredentialType JWT = new CredentialType("jwt");

    /** mtls. */
    public static final CredentialType MTLS = new CredentialType("mtls");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static CredentialType fromJson(Json source) {
        return new CredentialType(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}