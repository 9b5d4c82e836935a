// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A page of failures, newest first.
 *
 * @param failures The failures.
 * @param nextCursor The cursor of the next page; absent on the last page. Null if absent.
 */
public record FailurePage(
        List<Failure> failures,
        @Nullable String nextCursor) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static FailurePage fromJson(Json source) {
        return new FailurePage(
                source.read("failures", json -> json.asList(Failure::fromJson)),
                source.readOptional("nextCursor", Json::asString));
    }
}