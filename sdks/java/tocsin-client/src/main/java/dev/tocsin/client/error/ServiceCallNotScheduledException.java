// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** SERVICE_CALL_NOT_SCHEDULED: The service call has started or finished: it can no longer be deleted. */
public class ServiceCallNotScheduledException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ServiceCallNotScheduledException(Problem problem) {
        super(problem);
    }
}