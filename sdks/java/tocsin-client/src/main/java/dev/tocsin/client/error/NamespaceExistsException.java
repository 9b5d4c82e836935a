// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** NAMESPACE_EXISTS: A namespace with this name exists. */
public class NamespaceExistsException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public NamespaceExistsException(Problem problem) {
        super(problem);
    }
}