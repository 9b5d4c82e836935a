package dev.tocsin.client;

import dev.tocsin.client.error.CalendarInUseException;
import dev.tocsin.client.error.CalendarNotFoundException;
import dev.tocsin.client.error.TooManyCalendarsException;
import dev.tocsin.client.error.VersionConflictException;
import dev.tocsin.client.model.Calendar;
import dev.tocsin.client.model.CalendarSummary;
import dev.tocsin.client.model.ListCalendars;
import dev.tocsin.client.model.PutCalendar;

/** Dates by name, such as holidays, that schedules skip, or on which alone they fire. */
public final class Calendars {
    private final AsyncCalendars async;

    Calendars(AsyncCalendars async) {
        this.async = async;
    }

    /**
     * Creates a calendar, or replaces all that it has. From then on, no schedule fires at an instant that it excludes.
     *
     * @param calendar its name and dates
     * @return the calendar
     * @throws TooManyCalendarsException if the namespace has as many as it can have
     * @throws VersionConflictException if it has not the expected version; 0: there must be none
     */
    public Calendar put(PutCalendar calendar) {
        return Run.join(async.put(calendar));
    }

    /**
     * Reads a calendar with its dates.
     *
     * @param namespace its namespace
     * @param name its name
     * @return the calendar
     * @throws CalendarNotFoundException if there is none
     */
    public Calendar get(String namespace, String name) {
        return Run.join(async.get(namespace, name));
    }

    /**
     * Lists the calendars of a namespace by name, without their dates.
     *
     * @param query which; its limit is the size of a page
     * @return the calendars
     */
    public Pages<CalendarSummary> list(ListCalendars query) {
        return new Pages<>(async.list(query));
    }

    /**
     * Deletes a calendar.
     *
     * @param namespace its namespace
     * @param name its name
     * @throws CalendarNotFoundException if there is none
     * @throws CalendarInUseException if schedules name it
     */
    public void delete(String namespace, String name) {
        Run.join(async.delete(namespace, name));
    }
}
