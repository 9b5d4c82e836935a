// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Which dead rows are meant: those with these ids, those of a namespace, or all.
 *
 * @param ids The id of each, up to 1,000.
 * @param namespace The namespace's name.
 * @param all With <code>true</code> and no other field: all dead rows.
 */
public record ChangeInbox(
        Field<List<String>> ids,
        Field<String> namespace,
        Field<Boolean> all) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static ChangeInbox of() {
        return new ChangeInbox(
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * The id of each, up to 1,000.
     *
     * @param value its value
     * @return a copy with it
     */
    public ChangeInbox ids(List<String> value) {
        return ids(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param ids The id of each, up to 1,000.
     * @return a copy with it
     */
    public ChangeInbox ids(Field<List<String>> ids) {
        return new ChangeInbox(
                ids,
                namespace,
                all);
    }

    /**
     * The namespace's name.
     *
     * @param value its value
     * @return a copy with it
     */
    public ChangeInbox namespace(String value) {
        return namespace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param namespace The namespace's name.
     * @return a copy with it
     */
    public ChangeInbox namespace(Field<String> namespace) {
        return new ChangeInbox(
                ids,
                namespace,
                all);
    }

    /**
     * With <code>true</code> and no other field: all dead rows.
     *
     * @param value its value
     * @return a copy with it
     */
    public ChangeInbox all(boolean value) {
        return all(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param all With <code>true</code> and no other field: all dead rows.
     * @return a copy with it
     */
    public ChangeInbox all(Field<Boolean> all) {
        return new ChangeInbox(
                ids,
                namespace,
                all);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        ids.putInto(sent, "ids", each -> Json.array(each, Json::of));
        namespace.putInto(sent, "namespace", Json::of);
        all.putInto(sent, "all", Json::of);
        return Json.object(sent);
    }
}