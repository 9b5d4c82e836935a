// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A credential without its secret.
 *
 * @param namespace The namespace's name.
 * @param name The credential's name, unique in its namespace.
 * @param type How a request identifies itself.
 * @param hosts Where it may be sent, and nowhere else: <code>host</code> or <code>host:port</code> for HTTPS,
 * <code>http://host:port</code> for plain HTTP. Without any, only this machine's own addresses.
 * @param version 1, and one more with each change.
 * @param createdAt An RFC 3339 instant with a time zone.
 * @param updatedAt An RFC 3339 instant with a time zone.
 * @param username Of basic: the user's name. Null if absent.
 * @param tokenUrl Of oauth2ClientCredentials: the token endpoint. Null if absent.
 * @param clientId Of oauth2ClientCredentials: the client's id. Null if absent.
 * @param clientAuthentication Of oauth2ClientCredentials: whether the token endpoint gets the client's secret in the header
 * Authorization (<code>basic</code>, the default) or in the body (<code>post</code>). Null if absent.
 * @param scope Of oauth2ClientCredentials: the scopes to ask for, with spaces between. Null if absent.
 * @param audience Of jwt: its <code>aud</code>. Of oauth2ClientCredentials: the parameter <code>audience</code>. Null if absent.
 * @param lifetime Of jwt: how long each is valid, 1m to 1h. Default 10m. Null if absent.
 * @param certificate Of mtls: the client's certificate in PEM, followed by those that lead to its authority. Null if absent.
 * @param ca Certificates in PEM of the authorities that are trusted for its hosts, instead of those that the
 * system trusts. Null if absent.
 * @param description What it is for, in one line; shown in lists. Null if absent.
 * @param managedBy The declaration that it comes from, such as the name of a repository. Null if absent.
 */
public record Credential(
        String namespace,
        String name,
        CredentialType type,
        List<String> hosts,
        long version,
        Instant createdAt,
        Instant updatedAt,
        @Nullable String username,
        @Nullable String tokenUrl,
        @Nullable String clientId,
        @Nullable ClientAuth clientAuthentication,
        @Nullable String scope,
        @Nullable String audience,
        @Nullable String lifetime,
        @Nullable String certificate,
        @Nullable String ca,
        @Nullable String description,
        @Nullable String managedBy) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Credential fromJson(Json source) {
        return new Credential(
                source.read("namespace", Json::asString),
                source.read("name", Json::asString),
                source.read("type", CredentialType::fromJson),
                source.read("hosts", json -> json.asList(Json::asString)),
                source.read("version", Json::asLong),
                source.read("createdAt", Values::toInstant),
                source.read("updatedAt", Values::toInstant),
                source.readOptional("username", Json::asString),
                source.readOptional("tokenUrl", Json::asString),
                source.readOptional("clientId", Json::asString),
                source.readOptional("clientAuthentication", ClientAuth::fromJson),
                source.readOptional("scope", Json::asString),
                source.readOptional("audience", Json::asString),
                source.readOptional("lifetime", Json::asString),
                source.readOptional("certificate", Json::asString),
                source.readOptional("ca", Json::asString),
                source.readOptional("description", Json::asString),
                source.readOptional("managedBy", Json::asString));
    }
}