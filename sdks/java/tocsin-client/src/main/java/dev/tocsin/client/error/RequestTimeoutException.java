// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** REQUEST_TIMEOUT: The request did not arrive completely within the time limit. The server closes the connection. */
public class RequestTimeoutException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public RequestTimeoutException(Problem problem) {
        super(problem);
    }
}