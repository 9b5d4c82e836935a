// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** TIMER_PENDING: The timer has not finished, so there is nothing to replay. Nothing was written. */
public class TimerPendingException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public TimerPendingException(Problem problem) {
        super(problem);
    }
}