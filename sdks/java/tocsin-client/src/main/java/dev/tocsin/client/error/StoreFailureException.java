// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** STORE_FAILURE: The store failed. A write may have taken effect. */
public class StoreFailureException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public StoreFailureException(Problem problem) {
        super(problem);
    }
}