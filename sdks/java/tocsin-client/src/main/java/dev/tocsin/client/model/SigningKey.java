// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * A public key (RFC 7517).
 *
 * @param kty The kind of key.
 * @param crv The curve.
 * @param x The public point's x.
 * @param y The public point's y.
 * @param kid The key's id, which is in the header of each JWT.
 * @param use What it is for: signatures.
 * @param alg The algorithm.
 */
public record SigningKey(
        String kty,
        String crv,
        String x,
        String y,
        String kid,
        String use,
        String alg) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static SigningKey fromJson(Json source) {
        return new SigningKey(
                source.read("kty", Json::asString),
                source.read("crv", Json::asString),
                source.read("x", Json::asString),
                source.read("y", Json::asString),
                source.read("kid", Json::asString),
                source.read("use", Json::asString),
                source.read("alg", Json::asString));
    }
}