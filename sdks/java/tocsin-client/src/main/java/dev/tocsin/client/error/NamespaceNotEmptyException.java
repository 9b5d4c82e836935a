// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** NAMESPACE_NOT_EMPTY: Timers or schedules are pending in the namespace, which its deletion would cancel. Nothing was
 * written. */
public class NamespaceNotEmptyException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public NamespaceNotEmptyException(Problem problem) {
        super(problem);
    }
}