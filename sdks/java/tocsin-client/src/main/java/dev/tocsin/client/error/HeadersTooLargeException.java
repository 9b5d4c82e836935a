// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** HEADERS_TOO_LARGE: The request has too many headers, or its headers are too large. */
public class HeadersTooLargeException extends InvalidInputException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public HeadersTooLargeException(Problem problem) {
        super(problem);
    }
}