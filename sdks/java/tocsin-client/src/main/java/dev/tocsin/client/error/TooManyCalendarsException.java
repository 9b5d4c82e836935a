// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** TOO_MANY_CALENDARS: The maximum number of calendars exists in the namespace. Nothing was written. */
public class TooManyCalendarsException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public TooManyCalendarsException(Problem problem) {
        super(problem);
    }
}