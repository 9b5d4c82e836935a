// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** CALENDAR_IN_USE: Schedules that have not ended name the calendar. Nothing was written. */
public class CalendarInUseException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public CalendarInUseException(Problem problem) {
        super(problem);
    }
}