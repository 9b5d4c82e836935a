// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** BACKLOG_FULL: Too many triggers (at most 100) or backfills (at most 10) of the schedule are waiting. Nothing was
 * written. */
public class BacklogFullException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public BacklogFullException(Problem problem) {
        super(problem);
    }
}