// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** CALENDAR_NOT_FOUND: The namespace has no calendar of this name. */
public class CalendarNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public CalendarNotFoundException(Problem problem) {
        super(problem);
    }
}