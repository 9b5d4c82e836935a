// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A credential with all that it has. A secret that is left out keeps its stored value, unless
 * <code>hosts</code>, <code>tokenUrl</code> or <code>ca</code> would have it sent elsewhere; it is
 * never returned. Without <code>managedBy</code> the credential keeps it; null removes it.
 *
 * @param type How a request identifies itself.
 * @param namespace The namespace's name.
 * @param name The credential's name, unique in its namespace.
 * @param hosts Where it may be sent, and nowhere else: <code>host</code> or <code>host:port</code> for HTTPS,
 * <code>http://host:port</code> for plain HTTP. Without any, only this machine's own addresses.
 * @param username Of basic: the user's name.
 * @param tokenUrl Of oauth2ClientCredentials: the token endpoint.
 * @param clientId Of oauth2ClientCredentials: the client's id.
 * @param clientAuthentication Of oauth2ClientCredentials: whether the token endpoint gets the client's secret in the header
 * Authorization (<code>basic</code>, the default) or in the body (<code>post</code>).
 * @param scope Of oauth2ClientCredentials: the scopes to ask for, with spaces between.
 * @param audience Of jwt: its <code>aud</code>. Of oauth2ClientCredentials: the parameter <code>audience</code>.
 * @param lifetime Of jwt: how long each is valid, 1m to 1h. Default 10m.
 * @param certificate Of mtls: the client's certificate in PEM, followed by those that lead to its authority.
 * @param ca Certificates in PEM of the authorities that are trusted for its hosts, instead of those that the
 * system trusts.
 * @param description What it is for, in one line; shown in lists.
 * @param password Of basic: the password.
 * @param token Of bearer: the token.
 * @param clientSecret Of oauth2ClientCredentials: the client's secret.
 * @param privateKey Of mtls: the certificate's private key in PEM, without a password.
 * @param managedBy The declaration that it comes from, such as the name of a repository.
 * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
 * none.
 * @param dryRun Writes nothing: the response shows what would be written. Default false.
 */
public record PutCredential(
        CredentialType type,
        String namespace,
        String name,
        Field<List<String>> hosts,
        Field<String> username,
        Field<String> tokenUrl,
        Field<String> clientId,
        Field<ClientAuth> clientAuthentication,
        Field<String> scope,
        Field<String> audience,
        Field<String> lifetime,
        Field<String> certificate,
        Field<String> ca,
        Field<String> description,
        Field<String> password,
        Field<String> token,
        Field<String> clientSecret,
        Field<String> privateKey,
        Field<String> managedBy,
        Field<Long> expectedVersion,
        Field<Boolean> dryRun) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param type How a request identifies itself.
     * @param name The credential's name, unique in its namespace.
     * @return the request
     */
    public static PutCredential of(String namespace, CredentialType type, String name) {
        return new PutCredential(
                type,
                namespace,
                name,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * Where it may be sent, and nowhere else: <code>host</code> or <code>host:port</code> for HTTPS,
     * <code>http://host:port</code> for plain HTTP. Without any, only this machine's own addresses.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential hosts(List<String> value) {
        return hosts(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param hosts Where it may be sent, and nowhere else: <code>host</code> or <code>host:port</code> for HTTPS,
     * <code>http://host:port</code> for plain HTTP. Without any, only this machine's own addresses.
     * @return a copy with it
     */
    public PutCredential hosts(Field<List<String>> hosts) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of basic: the user's name.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential username(String value) {
        return username(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param username Of basic: the user's name.
     * @return a copy with it
     */
    public PutCredential username(Field<String> username) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of oauth2ClientCredentials: the token endpoint.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential tokenUrl(String value) {
        return tokenUrl(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tokenUrl Of oauth2ClientCredentials: the token endpoint.
     * @return a copy with it
     */
    public PutCredential tokenUrl(Field<String> tokenUrl) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of oauth2ClientCredentials: the client's id.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential clientId(String value) {
        return clientId(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param clientId Of oauth2ClientCredentials: the client's id.
     * @return a copy with it
     */
    public PutCredential clientId(Field<String> clientId) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of oauth2ClientCredentials: whether the token endpoint gets the client's secret in the header
     * Authorization (<code>basic</code>, the default) or in the body (<code>post</code>).
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential clientAuthentication(ClientAuth value) {
        return clientAuthentication(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param clientAuthentication Of oauth2ClientCredentials: whether the token endpoint gets the client's secret in the header
     * Authorization (<code>basic</code>, the default) or in the body (<code>post</code>).
     * @return a copy with it
     */
    public PutCredential clientAuthentication(Field<ClientAuth> clientAuthentication) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of oauth2ClientCredentials: the scopes to ask for, with spaces between.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential scope(String value) {
        return scope(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param scope Of oauth2ClientCredentials: the scopes to ask for, with spaces between.
     * @return a copy with it
     */
    public PutCredential scope(Field<String> scope) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of jwt: its <code>aud</code>. Of oauth2ClientCredentials: the parameter <code>audience</code>.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential audience(String value) {
        return audience(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param audience Of jwt: its <code>aud</code>. Of oauth2ClientCredentials: the parameter <code>audience</code>.
     * @return a copy with it
     */
    public PutCredential audience(Field<String> audience) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of jwt: how long each is valid, 1m to 1h. Default 10m.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential lifetime(String value) {
        return lifetime(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param lifetime Of jwt: how long each is valid, 1m to 1h. Default 10m.
     * @return a copy with it
     */
    public PutCredential lifetime(Field<String> lifetime) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of mtls: the client's certificate in PEM, followed by those that lead to its authority.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential certificate(String value) {
        return certificate(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param certificate Of mtls: the client's certificate in PEM, followed by those that lead to its authority.
     * @return a copy with it
     */
    public PutCredential certificate(Field<String> certificate) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Certificates in PEM of the authorities that are trusted for its hosts, instead of those that the
     * system trusts.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential ca(String value) {
        return ca(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param ca Certificates in PEM of the authorities that are trusted for its hosts, instead of those that the
     * system trusts.
     * @return a copy with it
     */
    public PutCredential ca(Field<String> ca) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * What it is for, in one line; shown in lists.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential description(String value) {
        return description(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param description What it is for, in one line; shown in lists.
     * @return a copy with it
     */
    public PutCredential description(Field<String> description) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of basic: the password.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential password(String value) {
        return password(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param password Of basic: the password.
     * @return a copy with it
     */
    public PutCredential password(Field<String> password) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of bearer: the token.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential token(String value) {
        return token(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param token Of bearer: the token.
     * @return a copy with it
     */
    public PutCredential token(Field<String> token) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of oauth2ClientCredentials: the client's secret.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential clientSecret(String value) {
        return clientSecret(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param clientSecret Of oauth2ClientCredentials: the client's secret.
     * @return a copy with it
     */
    public PutCredential clientSecret(Field<String> clientSecret) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Of mtls: the certificate's private key in PEM, without a password.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential privateKey(String value) {
        return privateKey(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param privateKey Of mtls: the certificate's private key in PEM, without a password.
     * @return a copy with it
     */
    public PutCredential privateKey(Field<String> privateKey) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The declaration that it comes from, such as the name of a repository.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential managedBy(String value) {
        return managedBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param managedBy The declaration that it comes from, such as the name of a repository.
     * @return a copy with it
     */
    public PutCredential managedBy(Field<String> managedBy) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential expectedVersion(long value) {
        return expectedVersion(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     * @return a copy with it
     */
    public PutCredential expectedVersion(Field<Long> expectedVersion) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Writes nothing: the response shows what would be written. Default false.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCredential dryRun(boolean value) {
        return dryRun(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param dryRun Writes nothing: the response shows what would be written. Default false.
     * @return a copy with it
     */
    public PutCredential dryRun(Field<Boolean> dryRun) {
        return new PutCredential(
                type,
                namespace,
                name,
                hosts,
                username,
                tokenUrl,
                clientId,
                clientAuthentication,
                scope,
                audience,
                lifetime,
                certificate,
                ca,
                description,
                password,
                token,
                clientSecret,
                privateKey,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("type", type.toJson());
        sent.put("namespace", Json.of(namespace));
        sent.put("name", Json.of(name));
        hosts.putInto(sent, "hosts", each -> Json.array(each, Json::of));
        username.putInto(sent, "username", Json::of);
        tokenUrl.putInto(sent, "tokenUrl", Json::of);
        clientId.putInto(sent, "clientId", Json::of);
        clientAuthentication.putInto(sent, "clientAuthentication", ClientAuth::toJson);
        scope.putInto(sent, "scope", Json::of);
        audience.putInto(sent, "audience", Json::of);
        lifetime.putInto(sent, "lifetime", Json::of);
        certificate.putInto(sent, "certificate", Json::of);
        ca.putInto(sent, "ca", Json::of);
        description.putInto(sent, "description", Json::of);
        password.putInto(sent, "password", Json::of);
        token.putInto(sent, "token", Json::of);
        clientSecret.putInto(sent, "clientSecret", Json::of);
        privateKey.putInto(sent, "privateKey", Json::of);
        managedBy.putInto(sent, "managedBy", Json::of);
        expectedVersion.putInto(sent, "expectedVersion", Json::of);
        dryRun.putInto(sent, "dryRun", Json::of);
        return Json.object(sent);
    }
}