// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** ROTATION_PENDING: The secret was rotated recently, and the previous secret still signs during the grace period.
 * Nothing was changed. */
public class RotationPendingException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public RotationPendingException(Problem problem) {
        super(problem);
    }
}