// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A monitor. <code>expectedAt</code> and <code>deadline</code> are those of its open period; absent
 * while nothing is expected.
 *
 * @param namespace The namespace's name.
 * @param id The monitor's id, unique among its namespace's monitors.
 * @param grace How long after the expected instant a report may come, or an occurrence end. Default 5m; 1s to 31d.
 * @param tags Labels to filter lists by.
 * @param state new (no report yet, or no occurrence that has ended), up, late, failed or paused.
 * @param since Since when it has this state.
 * @param running Whether its job has started and not ended.
 * @param version 1, and one more with each change.
 * @param createdAt An RFC 3339 instant with a time zone.
 * @param updatedAt An RFC 3339 instant with a time zone.
 * @param cron A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
 * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly. Null if absent.
 * @param timeZone The IANA time zone of cron. Default UTC. Null if absent.
 * @param every A report is expected so long after the last one; 1s to 366d, instead of cron. Null if absent.
 * @param schedule The id of a schedule of the namespace that it watches, instead of cron or every: it needs no ping,
 * and is late when an occurrence has not ended grace after its instant. It expects nothing while the
 * schedule is paused, or after its end. Null if absent.
 * @param repeat While it is late, notify again so often; at least 1m. Default: once. Null if absent.
 * @param onLate Who is notified when it is late, and when its job reports a failure, or an occurrence fails. Null if absent.
 * @param onRecovery Who is notified when its job succeeds after it was late or had failed. Null if absent.
 * @param description What it is for, in one line; shown in lists and never sent to the callback. Null if absent.
 * @param managedBy The declaration that it comes from, such as the name of a repository. Null if absent.
 * @param lastPingAt An RFC 3339 instant with a time zone. Null if absent.
 * @param expectedAt An RFC 3339 instant with a time zone. Null if absent.
 * @param deadline An RFC 3339 instant with a time zone. Null if absent.
 * @param unwatchedSince An RFC 3339 instant with a time zone. Null if absent.
 */
public record Monitor(
        String namespace,
        String id,
        String grace,
        List<String> tags,
        MonitorState state,
        String since,
        boolean running,
        long version,
        Instant createdAt,
        Instant updatedAt,
        @Nullable String cron,
        @Nullable String timeZone,
        @Nullable Duration every,
        @Nullable String schedule,
        @Nullable String repeat,
        @Nullable HookAnswer onLate,
        @Nullable HookAnswer onRecovery,
        @Nullable String description,
        @Nullable String managedBy,
        @Nullable String lastPingAt,
        @Nullable String expectedAt,
        @Nullable String deadline,
        @Nullable String unwatchedSince) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Monitor fromJson(Json source) {
        return new Monitor(
                source.read("namespace", Json::asString),
                source.read("id", Json::asString),
                source.read("grace", Json::asString),
                source.read("tags", json -> json.asList(Json::asString)),
                source.read("state", MonitorState::fromJson),
                source.read("since", Json::asString),
                source.read("running", Json::asBoolean),
                source.read("version", Json::asLong),
                source.read("createdAt", Values::toInstant),
                source.read("updatedAt", Values::toInstant),
                source.readOptional("cron", Json::asString),
                source.readOptional("timeZone", Json::asString),
                source.readOptional("every", Values::toDuration),
                source.readOptional("schedule", Json::asString),
                source.readOptional("repeat", Json::asString),
                source.readOptional("onLate", HookAnswer::fromJson),
                source.readOptional("onRecovery", HookAnswer::fromJson),
                source.readOptional("description", Json::asString),
                source.readOptional("managedBy", Json::asString),
                source.readOptional("lastPingAt", Json::asString),
                source.readOptional("expectedAt", Json::asString),
                source.readOptional("deadline", Json::asString),
                source.readOptional("unwatchedSince", Json::asString));
    }
}