// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** METHOD_NOT_ALLOWED: The path exists, but does not accept this method. */
public class MethodNotAllowedException extends InvalidInputException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public MethodNotAllowedException(Problem problem) {
        super(problem);
    }
}