// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** IDEMPOTENCY_CONFLICT: An earlier request used the same idempotency key, or service call id, with different content.
 * Nothing was written. */
public class IdempotencyConflictException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public IdempotencyConflictException(Problem problem) {
        super(problem);
    }
}