package dev.tocsin.client;

import dev.tocsin.client.error.CalendarInUseException;
import dev.tocsin.client.error.CalendarNotFoundException;
import dev.tocsin.client.error.TooManyCalendarsException;
import dev.tocsin.client.error.VersionConflictException;
import dev.tocsin.client.model.Calendar;
import dev.tocsin.client.model.CalendarId;
import dev.tocsin.client.model.CalendarPage;
import dev.tocsin.client.model.CalendarSummary;
import dev.tocsin.client.model.ListCalendars;
import dev.tocsin.client.model.PutCalendar;
import java.util.concurrent.CompletableFuture;

/** Dates by name, such as holidays, that schedules skip, or on which alone they fire; for programs that do not block. */
public final class AsyncCalendars {
    private final Steps steps;

    AsyncCalendars(Steps steps) {
        this.steps = steps;
    }

    /**
     * Creates a calendar, or replaces all that it has. From then on, no schedule fires at an instant that it excludes.
     *
     * @param calendar its name and dates
     * @return the calendar; fails with {@link TooManyCalendarsException} if the namespace has as many as it can have, and with
     *     {@link VersionConflictException} if it has not the expected version; 0: there must be none
     */
    public CompletableFuture<Calendar> put(PutCalendar calendar) {
        Call get = named(Operation.GET_CALENDAR, calendar.namespace(), calendar.name());
        return steps.update(Call.of(Operation.PUT_CALENDAR, calendar.toJson()), get, Calendar::fromJson);
    }

    /**
     * Reads a calendar with its dates.
     *
     * @param namespace its namespace
     * @param name its name
     * @return the calendar; fails with {@link CalendarNotFoundException} if there is none
     */
    public CompletableFuture<Calendar> get(String namespace, String name) {
        return steps.ask(named(Operation.GET_CALENDAR, namespace, name), Calendar::fromJson);
    }

    /**
     * Lists the calendars of a namespace by name, without their dates.
     *
     * @param query which; its limit is the size of a page
     * @return the calendars
     */
    public AsyncPages<CalendarSummary> list(ListCalendars query) {
        return new AsyncPages<>(after -> {
            ListCalendars page = after == null ? query : query.cursor(after);
            return steps.ask(Call.of(Operation.LIST_CALENDARS, page.toJson()), json -> {
                CalendarPage found = CalendarPage.fromJson(json);
                return new Page<>(found.calendars(), found.nextCursor());
            });
        });
    }

    /**
     * Deletes a calendar.
     *
     * @param namespace its namespace
     * @param name its name
     * @return completed when it is done; fails with {@link CalendarNotFoundException} if there is none, and with {@link
     *     CalendarInUseException} if schedules name it
     */
    public CompletableFuture<Void> delete(String namespace, String name) {
        return steps.delete(
                named(Operation.DELETE_CALENDAR, namespace, name),
                named(Operation.GET_CALENDAR, namespace, name),
                found -> false);
    }

    private static Call named(Operation operation, String namespace, String name) {
        return Call.of(operation, CalendarId.of(namespace, name).toJson());
    }
}
