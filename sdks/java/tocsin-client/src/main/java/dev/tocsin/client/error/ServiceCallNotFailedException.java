// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** SERVICE_CALL_NOT_FAILED: The service call has not failed, so it can't be retried; the message states its state. Nothing was
 * written. */
public class ServiceCallNotFailedException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ServiceCallNotFailedException(Problem problem) {
        super(problem);
    }
}