// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** QUOTA_EXCEEDED: A quota of the namespace has no room for the request: too many timers are pending
 * (<code>pending</code>), too many were created in the last second (<code>createsPerSecond</code>), or
 * the payload is too large (<code>payloadBytes</code>). Nothing was written. */
public class QuotaExceededException extends OverloadedException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public QuotaExceededException(Problem problem) {
        super(problem);
    }
}