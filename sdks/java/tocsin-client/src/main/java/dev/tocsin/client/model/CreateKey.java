// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An API key to create. Without <code>namespaces</code> and <code>tenants</code> it has access to all
 * of them, which only an unlimited key can grant.
 *
 * @param role What the key allows; each role includes the previous ones.
 * @param name What the key is for.
 * @param namespaces Limits the key to these namespaces.
 * @param tenants Limits the key to these tenants.
 * @param expiresAt When the key expires; without it, never.
 * @param operations Limits the key to these operations: names such as <code>timers/create</code>, which are the paths
 * below the version, for service calls <code>calls/submit</code> and its like; groups such as
 * <code>timers/*</code>; <code>read</code>, for all that a key of role read may use.
 * @param sources Limits the key to requests from these addresses and networks. The client's address counts, which
 * behind a proxy the setting <code>trusted_proxies</code> finds.
 */
public record CreateKey(
        KeyRole role,
        Field<String> name,
        Field<List<String>> namespaces,
        Field<List<String>> tenants,
        Field<Instant> expiresAt,
        Field<List<String>> operations,
        Field<List<String>> sources) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param role What the key allows; each role includes the previous ones.
     * @return the request
     */
    public static CreateKey of(KeyRole role) {
        return new CreateKey(
                role,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * What the key is for.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateKey name(String value) {
        return name(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param name What the key is for.
     * @return a copy with it
     */
    public CreateKey name(Field<String> name) {
        return new CreateKey(
                role,
                name,
                namespaces,
                tenants,
                expiresAt,
                operations,
                sources);
    }

    /**
     * Limits the key to these namespaces.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateKey namespaces(List<String> value) {
        return namespaces(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param namespaces Limits the key to these namespaces.
     * @return a copy with it
     */
    public CreateKey namespaces(Field<List<String>> namespaces) {
        return new CreateKey(
                role,
                name,
                namespaces,
                tenants,
                expiresAt,
                operations,
                sources);
    }

    /**
     * Limits the key to these tenants.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateKey tenants(List<String> value) {
        return tenants(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tenants Limits the key to these tenants.
     * @return a copy with it
     */
    public CreateKey tenants(Field<List<String>> tenants) {
        return new CreateKey(
                role,
                name,
                namespaces,
                tenants,
                expiresAt,
                operations,
                sources);
    }

    /**
     * When the key expires; without it, never.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateKey expiresAt(Instant value) {
        return expiresAt(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expiresAt When the key expires; without it, never.
     * @return a copy with it
     */
    public CreateKey expiresAt(Field<Instant> expiresAt) {
        return new CreateKey(
                role,
                name,
                namespaces,
                tenants,
                expiresAt,
                operations,
                sources);
    }

    /**
     * Limits the key to these operations: names such as <code>timers/create</code>, which are the paths
     * below the version, for service calls <code>calls/submit</code> and its like; groups such as
     * <code>timers/*</code>; <code>read</code>, for all that a key of role read may use.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateKey operations(List<String> value) {
        return operations(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param operations Limits the key to these operations: names such as <code>timers/create</code>, which are the paths
     * below the version, for service calls <code>calls/submit</code> and its like; groups such as
     * <code>timers/*</code>; <code>read</code>, for all that a key of role read may use.
     * @return a copy with it
     */
    public CreateKey operations(Field<List<String>> operations) {
        return new CreateKey(
                role,
                name,
                namespaces,
                tenants,
                expiresAt,
                operations,
                sources);
    }

    /**
     * Limits the key to requests from these addresses and networks. The client's address counts, which
     * behind a proxy the setting <code>trusted_proxies</code> finds.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateKey sources(List<String> value) {
        return sources(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param sources Limits the key to requests from these addresses and networks. The client's address counts, which
     * behind a proxy the setting <code>trusted_proxies</code> finds.
     * @return a copy with it
     */
    public CreateKey sources(Field<List<String>> sources) {
        return new CreateKey(
                role,
                name,
                namespaces,
                tenants,
                expiresAt,
                operations,
                sources);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("role", role.toJson());
        name.putInto(sent, "name", Json::of);
        namespaces.putInto(sent, "namespaces", each -> Json.array(each, Json::of));
        tenants.putInto(sent, "tenants", each -> Json.array(each, Json::of));
        expiresAt.putInto(sent, "expiresAt", Values::toJson);
        operations.putInto(sent, "operations", each -> Json.array(each, Json::of));
        sources.putInto(sent, "sources", each -> Json.array(each, Json::of));
        return Json.object(sent);
    }
}