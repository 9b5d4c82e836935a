// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * An accepted service call: from this request, or from the earlier one that it repeats.
 *
 * @param serviceCallId A UUID of version 7.
 * @param status status
 * @param correlationId Shared by every message and row that results from the submission.
 */
public record SubmittedServiceCall(
        String serviceCallId,
        ServiceCallStatus status,
        String correlationId) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static SubmittedServiceCall fromJson(Json source) {
        return new SubmittedServiceCall(
                source.read("serviceCallId", Json::asString),
                source.read("status", ServiceCallStatus::fromJson),
                source.read("correlationId", Json::asString));
    }
}