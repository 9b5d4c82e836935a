// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** TIMER_NOT_REPLAYABLE: What is kept of the finished timer is not enough to fire it again: its namespace keeps no history,
 * so that only its idempotency keys are left, or its record can't be read. Nothing was written. */
public class TimerNotReplayableException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public TimerNotReplayableException(Problem problem) {
        super(problem);
    }
}