// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** JOB_ENDED: The job has ended, so it can't be paused, resumed or canceled, or get another rate. */
public class JobEndedException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public JobEndedException(Problem problem) {
        super(problem);
    }
}