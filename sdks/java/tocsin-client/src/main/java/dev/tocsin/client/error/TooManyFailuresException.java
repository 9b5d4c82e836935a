// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** TOO_MANY_FAILURES: This address has sent too many invalid API keys. */
public class TooManyFailuresException extends OverloadedException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public TooManyFailuresException(Problem problem) {
        super(problem);
    }
}