// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A definition, with exactly one of <code>cron</code> and <code>every</code>, or a schedule:
 * <code>namespace</code> and <code>scheduleId</code>. A definition with <code>only</code> or
 * <code>skip</code> requires the <code>namespace</code> of the calendars.
 *
 * @param namespace The namespace's name.
 * @param scheduleId The schedule's id, unique among its namespace's schedules.
 * @param cron A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
 * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly.
 * @param timeZone The IANA time zone of cron. Default UTC.
 * @param every An interval of 1s to 366d, by elapsed time, instead of cron.
 * @param anchor An instant from which every counts, in both directions. Default: the schedule's creation.
 * @param startAt No instant is earlier than this.
 * @param endAt All instants are earlier than this.
 * @param only Calendars: only instants on a date of one of them fire. Empty: no restriction.
 * @param skip Calendars: no instant on a date of any of them fires.
 * @param onSkipped What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to
 * the same time of day on the next date that is allowed, unless the rule has instants on that date or
 * before it. next requires cron with fixed times.
 * @param count Maximum number of instants. Default 10.
 */
public record PreviewSchedule(
        Field<String> namespace,
        Field<String> scheduleId,
        Field<String> cron,
        Field<String> timeZone,
        Field<Duration> every,
        Field<Instant> anchor,
        Field<Instant> startAt,
        Field<Instant> endAt,
        Field<List<String>> only,
        Field<List<String>> skip,
        Field<OnSkipped> onSkipped,
        Field<Long> count) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static PreviewSchedule of() {
        return new PreviewSchedule(
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
     * The namespace's name.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule namespace(String value) {
        return namespace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param namespace The namespace's name.
     * @return a copy with it
     */
    public PreviewSchedule namespace(Field<String> namespace) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * The schedule's id, unique among its namespace's schedules.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule scheduleId(String value) {
        return scheduleId(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param scheduleId The schedule's id, unique among its namespace's schedules.
     * @return a copy with it
     */
    public PreviewSchedule scheduleId(Field<String> scheduleId) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
     * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule cron(String value) {
        return cron(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cron A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
     * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly.
     * @return a copy with it
     */
    public PreviewSchedule cron(Field<String> cron) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * The IANA time zone of cron. Default UTC.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule timeZone(String value) {
        return timeZone(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param timeZone The IANA time zone of cron. Default UTC.
     * @return a copy with it
     */
    public PreviewSchedule timeZone(Field<String> timeZone) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * An interval of 1s to 366d, by elapsed time, instead of cron.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule every(Duration value) {
        return every(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param every An interval of 1s to 366d, by elapsed time, instead of cron.
     * @return a copy with it
     */
    public PreviewSchedule every(Field<Duration> every) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * An instant from which every counts, in both directions. Default: the schedule's creation.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule anchor(Instant value) {
        return anchor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param anchor An instant from which every counts, in both directions. Default: the schedule's creation.
     * @return a copy with it
     */
    public PreviewSchedule anchor(Field<Instant> anchor) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * No instant is earlier than this.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule startAt(Instant value) {
        return startAt(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param startAt No instant is earlier than this.
     * @return a copy with it
     */
    public PreviewSchedule startAt(Field<Instant> startAt) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * All instants are earlier than this.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule endAt(Instant value) {
        return endAt(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param endAt All instants are earlier than this.
     * @return a copy with it
     */
    public PreviewSchedule endAt(Field<Instant> endAt) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * Calendars: only instants on a date of one of them fire. Empty: no restriction.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule only(List<String> value) {
        return only(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param only Calendars: only instants on a date of one of them fire. Empty: no restriction.
     * @return a copy with it
     */
    public PreviewSchedule only(Field<List<String>> only) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * Calendars: no instant on a date of any of them fires.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule skip(List<String> value) {
        return skip(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param skip Calendars: no instant on a date of any of them fires.
     * @return a copy with it
     */
    public PreviewSchedule skip(Field<List<String>> skip) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to
     * the same time of day on the next date that is allowed, unless the rule has instants on that date or
     * before it. next requires cron with fixed times.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule onSkipped(OnSkipped value) {
        return onSkipped(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onSkipped What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to
     * the same time of day on the next date that is allowed, unless the rule has instants on that date or
     * before it. next requires cron with fixed times.
     * @return a copy with it
     */
    public PreviewSchedule onSkipped(Field<OnSkipped> onSkipped) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * Maximum number of instants. Default 10.
     *
     * @param value its value
     * @return a copy with it
     */
    public PreviewSchedule count(long value) {
        return count(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param count Maximum number of instants. Default 10.
     * @return a copy with it
     */
    public PreviewSchedule count(Field<Long> count) {
        return new PreviewSchedule(
                namespace,
                scheduleId,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                only,
                skip,
                onSkipped,
                count);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        namespace.putInto(sent, "namespace", Json::of);
        scheduleId.putInto(sent, "scheduleId", Json::of);
        cron.putInto(sent, "cron", Json::of);
        timeZone.putInto(sent, "timeZone", Json::of);
        every.putInto(sent, "every", Values::toJson);
        anchor.putInto(sent, "anchor", Values::toJson);
        startAt.putInto(sent, "startAt", Values::toJson);
        endAt.putInto(sent, "endAt", Values::toJson);
        only.putInto(sent, "only", each -> Json.array(each, Json::of));
        skip.putInto(sent, "skip", each -> Json.array(each, Json::of));
        onSkipped.putInto(sent, "onSkipped", OnSkipped::toJson);
        count.putInto(sent, "count", Json::of);
        return Json.object(sent);
    }
}