// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** TOO_MANY_FLOWS: The maximum number of rules of flows exists in the namespace. Nothing was written. */
public class TooManyFlowsException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public TooManyFlowsException(Problem problem) {
        super(problem);
    }
}