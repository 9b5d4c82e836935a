// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** VERSION_CONFLICT: The object has not the version in the request's <code>expectedVersion</code>: somebody else has
 * changed, created or deleted it since it was read. Nothing was written. */
public class VersionConflictException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public VersionConflictException(Problem problem) {
        super(problem);
    }
}