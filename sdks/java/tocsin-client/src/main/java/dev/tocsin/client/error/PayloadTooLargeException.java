// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** PAYLOAD_TOO_LARGE: The timer's payload, or the body of the service call's request, exceeds its limit, or the timer is
 * larger than the server's database can store. The request has no other error. */
public class PayloadTooLargeException extends InvalidInputException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public PayloadTooLargeException(Problem problem) {
        super(problem);
    }
}