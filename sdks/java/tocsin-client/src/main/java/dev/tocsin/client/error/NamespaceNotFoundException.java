// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** NAMESPACE_NOT_FOUND: No namespace has this name. */
public class NamespaceNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public NamespaceNotFoundException(Problem problem) {
        super(problem);
    }
}