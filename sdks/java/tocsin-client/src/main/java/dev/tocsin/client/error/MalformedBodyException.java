// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** MALFORMED_BODY: The body is not JSON, or not UTF-8. Nothing was written. */
public class MalformedBodyException extends InvalidInputException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public MalformedBodyException(Problem problem) {
        super(problem);
    }
}