// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** BODY_TOO_LARGE: The body is larger than the operation accepts. */
public class BodyTooLargeException extends InvalidInputException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public BodyTooLargeException(Problem problem) {
        super(problem);
    }
}