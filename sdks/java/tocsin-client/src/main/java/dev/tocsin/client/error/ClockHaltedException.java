// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** CLOCK_HALTED: Only from <code>tocsin dev</code>: the clock did not reach the instant asked for, because more than
 * 10,000 instants were due on the way, or what was due at one of them did not finish. The clock shows
 * an earlier instant. */
public class ClockHaltedException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ClockHaltedException(Problem problem) {
        super(problem);
    }
}