// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** TOO_MANY_KEYS: The maximum number of API keys exists. Nothing was written. */
public class TooManyKeysException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public TooManyKeysException(Problem problem) {
        super(problem);
    }
}