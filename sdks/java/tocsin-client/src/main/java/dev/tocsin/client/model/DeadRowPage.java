// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A page of dead rows, the oldest first.
 *
 * @param rows rows
 * @param nextCursor The cursor of the next page; absent on the last page. Null if absent.
 */
public record DeadRowPage(
        List<DeadRow> rows,
        @Nullable String nextCursor) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static DeadRowPage fromJson(Json source) {
        return new DeadRowPage(
                source.read("rows", json -> json.asList(DeadRow::fromJson)),
                source.readOptional("nextCursor", Json::asString));
    }
}