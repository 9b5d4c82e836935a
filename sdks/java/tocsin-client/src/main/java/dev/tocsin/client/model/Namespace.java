// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A namespace and its settings. The secret is never shown.
 *
 * @param name The namespace's name.
 * @param numShards The number of shards that its timers are spread over. Cannot be changed later.
 * @param history Which finished timers stay visible.
 * @param retention How long finished timers stay visible.
 * @param paused paused
 * @param signed Whether it has a signing secret.
 * @param answers What a 2xx response to a callback means. standard: success, unless its body is a JSON object with
 * ok: false or nextExecuteAt. strict: success only with an empty body or ok: true.
 * @param retryPolicy The policy of timers without their own: the namespace's, or the default.
 * @param createdAt An RFC 3339 instant with a time zone.
 * @param updatedAt An RFC 3339 instant with a time zone.
 * @param version 1, and one more with each change.
 * @param previousSecretUntil Until when the previous secret keeps signing; absent if none does. Null if absent.
 * @param damaged Why the stored record can't be read; absent if it can. The fields besides name are then
 * placeholders. Timers of the namespace wait, and its operations are refused, until the record is
 * restored from a backup. Null if absent.
 * @param deleting The job's id. Null if absent.
 * @param limits The limits of all attempts of the namespace together. Null if absent.
 * @param quotas Its quotas; absent if it has none. Null if absent.
 * @param callbackBatch Due timers with the same URL, method, headers and timeout are sent in one request, which the
 * receiver answers timer by timer. Null if absent.
 * @param eventSink Where what becomes of its timers, schedules and monitors is published: below this subject of NATS,
 * such as <code>shop.events.timer.failed</code>, with JetStream’s acknowledgement. The setting
 * <code>nats_targets</code> has to list the subject for the namespace. Events without a sink are not
 * kept. Null if absent.
 * @param onFailure Who is notified when it has failed, or expired. Null if absent.
 * @param onSuccess Who is notified when it has succeeded. Null if absent.
 * @param onRecovery Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
 * its replay. Null if absent.
 * @param onMissed Who is notified when instants did not fire, though the schedule was not paused. Null if absent.
 * @param onPaused Who is notified when the schedule has paused itself after failures in a row. Null if absent.
 * @param onLate Who is notified when it is late, and when its job reports a failure, or an occurrence fails. Null if absent.
 * @param managedBy The declaration that it comes from, such as the name of a repository. Null if absent.
 */
public record Namespace(
        String name,
        long numShards,
        HistoryMode history,
        Duration retention,
        boolean paused,
        boolean signed,
        CallbackAnswers answers,
        RetryPolicyAnswer retryPolicy,
        Instant createdAt,
        Instant updatedAt,
        long version,
        @Nullable Instant previousSecretUntil,
        @Nullable String damaged,
        @Nullable String deleting,
        @Nullable FlowLimitsAnswer limits,
        @Nullable QuotasAnswer quotas,
        @Nullable CallbackBatchAnswer callbackBatch,
        @Nullable String eventSink,
        @Nullable HookAnswer onFailure,
        @Nullable HookAnswer onSuccess,
        @Nullable HookAnswer onRecovery,
        @Nullable HookAnswer onMissed,
        @Nullable HookAnswer onPaused,
        @Nullable HookAnswer onLate,
        @Nullable String managedBy) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Namespace fromJson(Json source) {
        return new Namespace(
                source.read("name", Json::asString),
                source.read("numShards", Json::asLong),
                source.read("history", HistoryMode::fromJson),
                source.read("retention", Values::toDuration),
                source.read("paused", Json::asBoolean),
                source.read("signed", Json::asBoolean),
                source.read("answers", CallbackAnswers::fromJson),
                source.read("retryPolicy", RetryPolicyAnswer::fromJson),
                source.read("createdAt", Values::toInstant),
                source.read("updatedAt", Values::toInstant),
                source.read("version", Json::asLong),
                source.readOptional("previousSecretUntil", Values::toInstant),
                source.readOptional("damaged", Json::asString),
                source.readOptional("deleting", Json::asString),
                source.readOptional("limits", FlowLimitsAnswer::fromJson),
                source.readOptional("quotas", QuotasAnswer::fromJson),
                source.readOptional("callbackBatch", CallbackBatchAnswer::fromJson),
                source.readOptional("eventSink", Json::asString),
                source.readOptional("onFailure", HookAnswer::fromJson),
                source.readOptional("onSuccess", HookAnswer::fromJson),
                source.readOptional("onRecovery", HookAnswer::fromJson),
                source.readOptional("onMissed", HookAnswer::fromJson),
                source.readOptional("onPaused", HookAnswer::fromJson),
                source.readOptional("onLate", HookAnswer::fromJson),
                source.readOptional("managedBy", Json::asString));
    }
}