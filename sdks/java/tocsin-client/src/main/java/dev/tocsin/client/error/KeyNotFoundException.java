// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** KEY_NOT_FOUND: No API key has this id, or the key is outside the scope of the caller's key. */
public class KeyNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public KeyNotFoundException(Problem problem) {
        super(problem);
    }
}