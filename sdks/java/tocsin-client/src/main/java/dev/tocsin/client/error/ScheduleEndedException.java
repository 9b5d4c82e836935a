// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** SCHEDULE_ENDED: The schedule was deleted, or has no more instants: it can no longer be changed or fired. */
public class ScheduleEndedException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ScheduleEndedException(Problem problem) {
        super(problem);
    }
}