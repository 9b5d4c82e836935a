// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** REQUEST_EXPIRED: The request exceeded its time budget while it waited. Nothing was written. */
public class RequestExpiredException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public RequestExpiredException(Problem problem) {
        super(problem);
    }
}