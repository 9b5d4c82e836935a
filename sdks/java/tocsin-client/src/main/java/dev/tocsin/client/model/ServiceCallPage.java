// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A page of service calls, newest first. A page without <code>nextCursor</code> is the last.
 *
 * @param serviceCalls serviceCalls
 * @param nextCursor <code>nextCursor</code> of the previous page. Null if absent.
 */
public record ServiceCallPage(
        List<ServiceCallSummary> serviceCalls,
        @Nullable String nextCursor) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ServiceCallPage fromJson(Json source) {
        return new ServiceCallPage(
                source.read("serviceCalls", json -> json.asList(ServiceCallSummary::fromJson)),
                source.readOptional("nextCursor", Json::asString));
    }
}