// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** JOB_RUNNING: A job that has not ended, running or paused, may change the same timers or schedules. Nothing was
 * written. */
public class JobRunningException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public JobRunningException(Problem problem) {
        super(problem);
    }
}