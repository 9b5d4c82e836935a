// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** NOT_READY: <code>/readyz</code> only: the node should receive no traffic now. <code>errors</code> lists the
 * reasons. */
public class NotReadyException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public NotReadyException(Problem problem) {
        super(problem);
    }
}