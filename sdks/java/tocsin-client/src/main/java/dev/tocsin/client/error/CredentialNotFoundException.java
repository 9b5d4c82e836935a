// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** CREDENTIAL_NOT_FOUND: The namespace has no credential of this name. */
public class CredentialNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public CredentialNotFoundException(Problem problem) {
        super(problem);
    }
}