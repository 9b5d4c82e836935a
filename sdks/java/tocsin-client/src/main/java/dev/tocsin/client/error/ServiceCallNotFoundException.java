// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** SERVICE_CALL_NOT_FOUND: The tenant has no service call with this id, or the call is no longer retained. */
public class ServiceCallNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ServiceCallNotFoundException(Problem problem) {
        super(problem);
    }
}