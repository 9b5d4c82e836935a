// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** JOB_NOT_FOUND: No job has this id, or the key has no access to its namespace. A job is kept for 30 days after its
 * end. */
public class JobNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public JobNotFoundException(Problem problem) {
        super(problem);
    }
}