// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** TOO_MANY_CREDENTIALS: The maximum number of credentials exists in the namespace. Nothing was written. */
public class TooManyCredentialsException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public TooManyCredentialsException(Problem problem) {
        super(problem);
    }
}