// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** MALFORMED_REQUEST: The data received on the connection is not HTTP/1.1. The server closes the connection. */
public class MalformedRequestException extends InvalidInputException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public MalformedRequestException(Problem problem) {
        super(problem);
    }
}