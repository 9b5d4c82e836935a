// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A callback body that is sent, and signed, exactly as given; send one of <code>json</code>,
 * <code>text</code> and <code>base64</code>. The fields that otherwise surround the payload are sent
 * as headers: <code>tocsin-namespace</code>, <code>tocsin-timer-id</code> (percent-encoded),
 * <code>tocsin-execute-at</code>, <code>tocsin-fired-at</code>, <code>tocsin-attempt</code>.
 *
 * @param json Any JSON, sent byte for byte as written; at most 102400 bytes.
 * @param text Text, sent in UTF-8.
 * @param base64 Bytes, in base64 with padding.
 * @param contentType The body's media type. Default: application/json, text/plain; charset=utf-8 or application/octet-
 * stream.
 */
public record RawBody(
        Field<Json> json,
        Field<String> text,
        Field<String> base64,
        Field<String> contentType) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static RawBody of() {
        return new RawBody(
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * Any JSON, sent byte for byte as written; at most 102400 bytes.
     *
     * @param value its value
     * @return a copy with it
     */
    public RawBody json(Json value) {
        return json(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param json Any JSON, sent byte for byte as written; at most 102400 bytes.
     * @return a copy with it
     */
    public RawBody json(Field<Json> json) {
        return new RawBody(
                json,
                text,
                base64,
                contentType);
    }

    /**
     * Text, sent in UTF-8.
     *
     * @param value its value
     * @return a copy with it
     */
    public RawBody text(String value) {
        return text(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param text Text, sent in UTF-8.
     * @return a copy with it
     */
    public RawBody text(Field<String> text) {
        return new RawBody(
                json,
                text,
                base64,
                contentType);
    }

    /**
     * Bytes, in base64 with padding.
     *
     * @param value its value
     * @return a copy with it
     */
    public RawBody base64(String value) {
        return base64(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param base64 Bytes, in base64 with padding.
     * @return a copy with it
     */
    public RawBody base64(Field<String> base64) {
        return new RawBody(
                json,
                text,
                base64,
                contentType);
    }

    /**
     * The body's media type. Default: application/json, text/plain; charset=utf-8 or application/octet-
     * stream.
     *
     * @param value its value
     * @return a copy with it
     */
    public RawBody contentType(String value) {
        return contentType(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param contentType The body's media type. Default: application/json, text/plain; charset=utf-8 or application/octet-
     * stream.
     * @return a copy with it
     */
    public RawBody contentType(Field<String> contentType) {
        return new RawBody(
                json,
                text,
                base64,
                contentType);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        json.putInto(sent, "json", value -> value);
        text.putInto(sent, "text", Json::of);
        base64.putInto(sent, "base64", Json::of);
        contentType.putInto(sent, "contentType", Json::of);
        return Json.object(sent);
    }
}