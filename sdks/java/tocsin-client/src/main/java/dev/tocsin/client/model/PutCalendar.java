// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A calendar with all its dates; send at least one of <code>dates</code>, <code>ranges</code> and
 * <code>weekdays</code>. Without <code>managedBy</code> the calendar keeps it; null removes it.
 *
 * @param namespace The namespace's name.
 * @param name The calendar's name, unique in its namespace.
 * @param timeZone The IANA time zone in which its dates begin and end. Default UTC.
 * @param dates Single dates, as 2027-12-25.
 * @param ranges Ranges of dates, both ends included.
 * @param weekdays Weekdays, of every week.
 * @param description What it is for, in one line; shown in lists.
 * @param managedBy The declaration that it comes from, such as the name of a repository.
 * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
 * none.
 */
public record PutCalendar(
        String namespace,
        String name,
        Field<String> timeZone,
        Field<List<String>> dates,
        Field<List<DateRange>> ranges,
        Field<List<Weekday>> weekdays,
        Field<String> description,
        Field<String> managedBy,
        Field<Long> expectedVersion) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param name The calendar's name, unique in its namespace.
     * @return the request
     */
    public static PutCalendar of(String namespace, String name) {
        return new PutCalendar(
                namespace,
                name,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * The IANA time zone in which its dates begin and end. Default UTC.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCalendar timeZone(String value) {
        return timeZone(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param timeZone The IANA time zone in which its dates begin and end. Default UTC.
     * @return a copy with it
     */
    public PutCalendar timeZone(Field<String> timeZone) {
        return new PutCalendar(
                namespace,
                name,
                timeZone,
                dates,
                ranges,
                weekdays,
                description,
                managedBy,
                expectedVersion);
    }

    /**
     * Single dates, as 2027-12-25.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCalendar dates(List<String> value) {
        return dates(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param dates Single dates, as 2027-12-25.
     * @return a copy with it
     */
    public PutCalendar dates(Field<List<String>> dates) {
        return new PutCalendar(
                namespace,
                name,
                timeZone,
                dates,
                ranges,
                weekdays,
                description,
                managedBy,
                expectedVersion);
    }

    /**
     * Ranges of dates, both ends included.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCalendar ranges(List<DateRange> value) {
        return ranges(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param ranges Ranges of dates, both ends included.
     * @return a copy with it
     */
    public PutCalendar ranges(Field<List<DateRange>> ranges) {
        return new PutCalendar(
                namespace,
                name,
                timeZone,
                dates,
                ranges,
                weekdays,
                description,
                managedBy,
                expectedVersion);
    }

    /**
     * Weekdays, of every week.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCalendar weekdays(List<Weekday> value) {
        return weekdays(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param weekdays Weekdays, of every week.
     * @return a copy with it
     */
    public PutCalendar weekdays(Field<List<Weekday>> weekdays) {
        return new PutCalendar(
                namespace,
                name,
                timeZone,
                dates,
                ranges,
                weekdays,
                description,
                managedBy,
                expectedVersion);
    }

    /**
     * What it is for, in one line; shown in lists.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCalendar description(String value) {
        return description(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param description What it is for, in one line; shown in lists.
     * @return a copy with it
     */
    public PutCalendar description(Field<String> description) {
        return new PutCalendar(
                namespace,
                name,
                timeZone,
                dates,
                ranges,
                weekdays,
                description,
                managedBy,
                expectedVersion);
    }

    /**
     * The declaration that it comes from, such as the name of a repository.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCalendar managedBy(String value) {
        return managedBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param managedBy The declaration that it comes from, such as the name of a repository.
     * @return a copy with it
     */
    public PutCalendar managedBy(Field<String> managedBy) {
        return new PutCalendar(
                namespace,
                name,
                timeZone,
                dates,
                ranges,
                weekdays,
                description,
                managedBy,
                expectedVersion);
    }

    /**
     * The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutCalendar expectedVersion(long value) {
        return expectedVersion(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     * @return a copy with it
     */
    public PutCalendar expectedVersion(Field<Long> expectedVersion) {
        return new PutCalendar(
                namespace,
                name,
                timeZone,
                dates,
                ranges,
                weekdays,
                description,
                managedBy,
                expectedVersion);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("name", Json.of(name));
        timeZone.putInto(sent, "timeZone", Json::of);
        dates.putInto(sent, "dates", each -> Json.array(each, Json::of));
        ranges.putInto(sent, "ranges", each -> Json.array(each, DateRange::toJson));
        weekdays.putInto(sent, "weekdays", each -> Json.array(each, Weekday::toJson));
        description.putInto(sent, "description", Json::of);
        managedBy.putInto(sent, "managedBy", Json::of);
        expectedVersion.putInto(sent, "expectedVersion", Json::of);
        return Json.object(sent);
    }
}