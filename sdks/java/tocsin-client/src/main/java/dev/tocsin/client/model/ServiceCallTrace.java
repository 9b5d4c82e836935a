// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;

/**
 * Everything stored under the correlation id of a service call, in order of time, each entry after its
 * cause.
 *
 * @param serviceCallId A UUID of version 7.
 * @param correlationId Shared by every message and row that results from the submission.
 * @param entries entries
 */
public record ServiceCallTrace(
        String serviceCallId,
        String correlationId,
        List<TraceEntry> entries) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ServiceCallTrace fromJson(Json source) {
        return new ServiceCallTrace(
                source.read("serviceCallId", Json::asString),
                source.read("correlationId", Json::asString),
                source.read("entries", json -> json.asList(TraceEntry::fromJson)));
    }
}