// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** NOT_AN_ISSUER: This server signs no JWTs for receivers. */
public class NotAnIssuerException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public NotAnIssuerException(Problem problem) {
        super(problem);
    }
}