// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A timer, pending or finished.
 *
 * @param namespace The namespace's name.
 * @param id The timer's id, unique in its namespace.
 * @param timerUuid Derived from namespace and id.
 * @param shardId The shard that holds the timer.
 * @param status status
 * @param executeAt An RFC 3339 instant with a time zone.
 * @param callbackUrl The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
 * secrets.
 * @param method The HTTP method of the callback.
 * @param headers Additional headers of the callback; secret values are [redacted].
 * @param callbackTimeoutSeconds Timeout of one attempt, in seconds.
 * @param tags Labels to filter lists by.
 * @param attempts Attempts made in the current firing.
 * @param attemptLog The latest attempts, oldest first.
 * @param createdAt An RFC 3339 instant with a time zone.
 * @param updatedAt An RFC 3339 instant with a time zone.
 * @param payload Absent if the timer has a body. Null if absent.
 * @param retryPolicy The timer's own policy; absent while the namespace's applies. Null if absent.
 * @param nextAttemptAt When the next attempt is due. Null if absent.
 * @param executedAt When the timer finished. Null if absent.
 * @param lastError Why the last failed attempt failed: a stable code, then details. Null if absent.
 * @param body The whole body of the callback, instead of the envelope with the payload. Null if absent.
 * @param expireAfter No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as
 * expired then, any other as failed. Null if absent.
 * @param description What the timer is for. Null if absent.
 * @param flowKey The flow that limits its attempts. Null if absent.
 * @param credential The credential that its requests have. Null if absent.
 * @param suspended Why the pending timer is suspended: <code>egress</code> (this server does not call its address),
 * <code>secret</code> (one can't be decrypted), <code>namespace:…</code>, <code>destination:…</code>,
 * <code>flow:…</code> (paused, or too many wait), <code>credential:…</code> (it can't be sent now),
 * <code>bad_record: …</code>; else absent. Null if absent.
 * @param explanation What the due timer does now, or waits for; only in a list that asks for it. Null if absent.
 * @param onFailure Who is notified when it has failed, or expired. Null if absent.
 * @param onSuccess Who is notified when it has succeeded. Null if absent.
 * @param onRecovery Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
 * its replay. Null if absent.
 * @param debounced Only of a timer that was created with onConflict debounce. Null if absent.
 */
public record Timer(
        String namespace,
        String id,
        String timerUuid,
        long shardId,
        TimerStatus status,
        Instant executeAt,
        String callbackUrl,
        CallbackMethod method,
        Map<String, String> headers,
        double callbackTimeoutSeconds,
        List<String> tags,
        long attempts,
        List<Attempt> attemptLog,
        Instant createdAt,
        Instant updatedAt,
        @Nullable Json payload,
        @Nullable RetryPolicyAnswer retryPolicy,
        @Nullable Instant nextAttemptAt,
        @Nullable Instant executedAt,
        @Nullable String lastError,
        @Nullable RawBodyAnswer body,
        @Nullable String expireAfter,
        @Nullable String description,
        @Nullable String flowKey,
        @Nullable String credential,
        @Nullable String suspended,
        @Nullable Explanation explanation,
        @Nullable HookAnswer onFailure,
        @Nullable HookAnswer onSuccess,
        @Nullable HookAnswer onRecovery,
        @Nullable Debounced debounced) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Timer fromJson(Json source) {
        return new Timer(
                source.read("namespace", Json::asString),
                source.read("id", Json::asString),
                source.read("timerUuid", Json::asString),
                source.read("shardId", Json::asLong),
                source.read("status", TimerStatus::fromJson),
                source.read("executeAt", Values::toInstant),
                source.read("callbackUrl", Json::asString),
                source.read("method", CallbackMethod::fromJson),
                source.read("headers", json -> json.asMap(Json::asString)),
                source.read("callbackTimeoutSeconds", Json::asDouble),
                source.read("tags", json -> json.asList(Json::asString)),
                source.read("attempts", Json::asLong),
                source.read("attemptLog", json -> json.asList(Attempt::fromJson)),
                source.read("createdAt", Values::toInstant),
                source.read("updatedAt", Values::toInstant),
                source.readOptional("payload", value -> value),
                source.readOptional("retryPolicy", RetryPolicyAnswer::fromJson),
                source.readOptional("nextAttemptAt", Values::toInstant),
                source.readOptional("executedAt", Values::toInstant),
                source.readOptional("lastError", Json::asString),
                source.readOptional("body", RawBodyAnswer::fromJson),
                source.readOptional("expireAfter", Json::asString),
                source.readOptional("description", Json::asString),
                source.readOptional("flowKey", Json::asString),
                source.readOptional("credential", Json::asString),
                source.readOptional("suspended", Json::asString),
                source.readOptional("explanation", Explanation::fromJson),
                source.readOptional("onFailure", HookAnswer::fromJson),
                source.readOptional("onSuccess", HookAnswer::fromJson),
                source.readOptional("onRecovery", HookAnswer::fromJson),
                source.readOptional("debounced", Debounced::fromJson));
    }
}