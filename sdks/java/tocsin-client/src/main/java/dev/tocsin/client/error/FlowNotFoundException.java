// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** FLOW_NOT_FOUND: The namespace has no rule of flows with exactly this match. */
public class FlowNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public FlowNotFoundException(Problem problem) {
        super(problem);
    }
}