// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** SCHEDULE_NOT_FOUND: The namespace has no schedule with this id, live or ended and still retained. */
public class ScheduleNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ScheduleNotFoundException(Problem problem) {
        super(problem);
    }
}