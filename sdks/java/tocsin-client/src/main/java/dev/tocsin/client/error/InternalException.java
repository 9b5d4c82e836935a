// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** INTERNAL: The server failed unexpectedly. Whether anything was written is unknown. */
public class InternalException extends ServerErrorException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public InternalException(Problem problem) {
        super(problem);
    }
}