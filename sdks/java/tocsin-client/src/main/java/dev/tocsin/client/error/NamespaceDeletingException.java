// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** NAMESPACE_DELETING: A job deletes the namespace. Until it has ended, nothing in it can be created or changed. Nothing
 * was written. */
public class NamespaceDeletingException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public NamespaceDeletingException(Problem problem) {
        super(problem);
    }
}