// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A service call, as in lists.
 *
 * @param serviceCallId A UUID of version 7.
 * @param tenantId A UUID of version 7.
 * @param name A display name.
 * @param status status
 * @param submittedAt An RFC 3339 instant with a time zone.
 * @param dueAt An RFC 3339 instant with a time zone.
 * @param tags Labels to filter lists by.
 * @param correlationId Shared by every message and row that results from the submission.
 * @param requestSpec requestSpec
 * @param attempts Finished attempts; an interrupted execution that was repeated does not count.
 * @param nextAttemptAt When the next attempt is due, while the status is Retrying. Null if absent.
 * @param startedAt An RFC 3339 instant with a time zone. Null if absent.
 * @param finishedAt An RFC 3339 instant with a time zone. Null if absent.
 * @param outcome outcome Null if absent.
 * @param flowKey The flow that limits its attempts. Null if absent.
 * @param waitsFor What a Running call that has not started waits for: flow, a slot or a token of its flow; credential,
 * that its credential can be sent. Null if absent.
 */
public record ServiceCallSummary(
        String serviceCallId,
        String tenantId,
        String name,
        ServiceCallStatus status,
        Instant submittedAt,
        Instant dueAt,
        List<String> tags,
        String correlationId,
        RequestLine requestSpec,
        long attempts,
        @Nullable Instant nextAttemptAt,
        @Nullable Instant startedAt,
        @Nullable Instant finishedAt,
        @Nullable Outcome outcome,
        @Nullable String flowKey,
        @Nullable TimerWaitsFor waitsFor) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ServiceCallSummary fromJson(Json source) {
        return new ServiceCallSummary(
                source.read("serviceCallId", Json::asString),
                source.read("tenantId", Json::asString),
                source.read("name", Json::asString),
                source.read("status", ServiceCallStatus::fromJson),
                source.read("submittedAt", Values::toInstant),
                source.read("dueAt", Values::toInstant),
                source.read("tags", json -> json.asList(Json::asString)),
                source.read("correlationId", Json::asString),
                source.read("requestSpec", RequestLine::fromJson),
                source.read("attempts", Json::asLong),
                source.readOptional("nextAttemptAt", Values::toInstant),
                source.readOptional("startedAt", Values::toInstant),
                source.readOptional("finishedAt", Values::toInstant),
                source.readOptional("outcome", Outcome::fromJson),
                source.readOptional("flowKey", Json::asString),
                source.readOptional("waitsFor", TimerWaitsFor::fromJson));
    }
}