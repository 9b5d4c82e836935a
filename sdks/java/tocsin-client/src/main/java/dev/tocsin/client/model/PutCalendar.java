// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A calendar with all its dates; send at least one of <code>dates</code>, <code>ranges</code> and
 * <code>weekdays</code>.
 *
 * @param namespace The namespace's name.
 * @param name The calendar's name, unique in its namespace.
 * @param timeZone The IANA time zone in which its dates begin and end. Default UTC.
 * @param dates Single dates, as 2027-12-25.
 * @param ranges Ranges of dates, both ends included.
 * @param weekdays Weekdays, of every week.
 */
public record PutCalendar(
        String namespace,
        String name,
        Field<String> timeZone,
        Field<List<String>> dates,
        Field<List<DateRange>> ranges,
        Field<List<Weekday>> weekdays) {

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
                weekdays);
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
                weekdays);
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
                weekdays);
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
                weekdays);
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
        return Json.object(sent);
    }
}