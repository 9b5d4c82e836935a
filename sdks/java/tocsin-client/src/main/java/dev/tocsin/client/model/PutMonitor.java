// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A monitor with all its fields; send exactly one of <code>cron</code>, <code>every</code> and
 * <code>schedule</code>. Without <code>managedBy</code> an existing monitor keeps it.
 *
 * @param namespace The namespace's name.
 * @param id The monitor's id, unique among its namespace's monitors.
 * @param cron A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
 * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly.
 * @param timeZone The IANA time zone of cron. Default UTC.
 * @param every A report is expected so long after the last one; 1s to 366d, instead of cron.
 * @param schedule The id of a schedule of the namespace that it watches, instead of cron or every: it needs no ping,
 * and is late when an occurrence has not ended grace after its instant. It expects nothing while the
 * schedule is paused, or after its end.
 * @param grace How long after the expected instant a report may come, or an occurrence end. Default 5m; 1s to 31d.
 * @param repeat While it is late, notify again so often; at least 1m. Default: once.
 * @param onLate Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
 * @param onRecovery Who is notified when its job succeeds after it was late or had failed.
 * @param tags Labels to filter lists by.
 * @param description What it is for, in one line; shown in lists and never sent to the callback.
 * @param managedBy The declaration that it comes from, such as the name of a repository.
 * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
 * none.
 * @param dryRun Writes nothing: the response shows what would be written. Default false.
 */
public record PutMonitor(
        String namespace,
        String id,
        Field<String> cron,
        Field<String> timeZone,
        Field<Duration> every,
        Field<String> schedule,
        Field<Duration> grace,
        Field<Duration> repeat,
        Field<Hook> onLate,
        Field<Hook> onRecovery,
        Field<List<String>> tags,
        Field<String> description,
        Field<String> managedBy,
        Field<Long> expectedVersion,
        Field<Boolean> dryRun) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param id The monitor's id, unique among its namespace's monitors.
     * @return the request
     */
    public static PutMonitor of(String namespace, String id) {
        return new PutMonitor(
                namespace,
                id,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
     * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor cron(String value) {
        return cron(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cron A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
     * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly.
     * @return a copy with it
     */
    public PutMonitor cron(Field<String> cron) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The IANA time zone of cron. Default UTC.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor timeZone(String value) {
        return timeZone(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param timeZone The IANA time zone of cron. Default UTC.
     * @return a copy with it
     */
    public PutMonitor timeZone(Field<String> timeZone) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * A report is expected so long after the last one; 1s to 366d, instead of cron.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor every(Duration value) {
        return every(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param every A report is expected so long after the last one; 1s to 366d, instead of cron.
     * @return a copy with it
     */
    public PutMonitor every(Field<Duration> every) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The id of a schedule of the namespace that it watches, instead of cron or every: it needs no ping,
     * and is late when an occurrence has not ended grace after its instant. It expects nothing while the
     * schedule is paused, or after its end.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor schedule(String value) {
        return schedule(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param schedule The id of a schedule of the namespace that it watches, instead of cron or every: it needs no ping,
     * and is late when an occurrence has not ended grace after its instant. It expects nothing while the
     * schedule is paused, or after its end.
     * @return a copy with it
     */
    public PutMonitor schedule(Field<String> schedule) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * How long after the expected instant a report may come, or an occurrence end. Default 5m; 1s to 31d.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor grace(Duration value) {
        return grace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param grace How long after the expected instant a report may come, or an occurrence end. Default 5m; 1s to 31d.
     * @return a copy with it
     */
    public PutMonitor grace(Field<Duration> grace) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * While it is late, notify again so often; at least 1m. Default: once.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor repeat(Duration value) {
        return repeat(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param repeat While it is late, notify again so often; at least 1m. Default: once.
     * @return a copy with it
     */
    public PutMonitor repeat(Field<Duration> repeat) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor onLate(Hook value) {
        return onLate(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onLate Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
     * @return a copy with it
     */
    public PutMonitor onLate(Field<Hook> onLate) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Who is notified when its job succeeds after it was late or had failed.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor onRecovery(Hook value) {
        return onRecovery(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onRecovery Who is notified when its job succeeds after it was late or had failed.
     * @return a copy with it
     */
    public PutMonitor onRecovery(Field<Hook> onRecovery) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Labels to filter lists by.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor tags(List<String> value) {
        return tags(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tags Labels to filter lists by.
     * @return a copy with it
     */
    public PutMonitor tags(Field<List<String>> tags) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * What it is for, in one line; shown in lists and never sent to the callback.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor description(String value) {
        return description(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param description What it is for, in one line; shown in lists and never sent to the callback.
     * @return a copy with it
     */
    public PutMonitor description(Field<String> description) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The declaration that it comes from, such as the name of a repository.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor managedBy(String value) {
        return managedBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param managedBy The declaration that it comes from, such as the name of a repository.
     * @return a copy with it
     */
    public PutMonitor managedBy(Field<String> managedBy) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor expectedVersion(long value) {
        return expectedVersion(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     * @return a copy with it
     */
    public PutMonitor expectedVersion(Field<Long> expectedVersion) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Writes nothing: the response shows what would be written. Default false.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutMonitor dryRun(boolean value) {
        return dryRun(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param dryRun Writes nothing: the response shows what would be written. Default false.
     * @return a copy with it
     */
    public PutMonitor dryRun(Field<Boolean> dryRun) {
        return new PutMonitor(
                namespace,
                id,
                cron,
                timeZone,
                every,
                schedule,
                grace,
                repeat,
                onLate,
                onRecovery,
                tags,
                description,
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("id", Json.of(id));
        cron.putInto(sent, "cron", Json::of);
        timeZone.putInto(sent, "timeZone", Json::of);
        every.putInto(sent, "every", Values::toJson);
        schedule.putInto(sent, "schedule", Json::of);
        grace.putInto(sent, "grace", Values::toJson);
        repeat.putInto(sent, "repeat", Values::toJson);
        onLate.putInto(sent, "onLate", Hook::toJson);
        onRecovery.putInto(sent, "onRecovery", Hook::toJson);
        tags.putInto(sent, "tags", each -> Json.array(each, Json::of));
        description.putInto(sent, "description", Json::of);
        managedBy.putInto(sent, "managedBy", Json::of);
        expectedVersion.putInto(sent, "expectedVersion", Json::of);
        dryRun.putInto(sent, "dryRun", Json::of);
        return Json.object(sent);
    }
}