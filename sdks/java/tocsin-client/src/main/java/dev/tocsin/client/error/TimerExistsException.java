// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** TIMER_EXISTS: A timer with this id exists, and the request has <code>onConflict: "reject"</code>. Nothing was
 * written. */
public class TimerExistsException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public TimerExistsException(Problem problem) {
        super(problem);
    }
}