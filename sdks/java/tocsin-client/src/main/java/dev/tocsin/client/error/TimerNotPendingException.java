// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** TIMER_NOT_PENDING: The timer has finished: it can no longer be changed or canceled. */
public class TimerNotPendingException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public TimerNotPendingException(Problem problem) {
        super(problem);
    }
}