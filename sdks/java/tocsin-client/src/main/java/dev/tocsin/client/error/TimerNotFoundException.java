// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** TIMER_NOT_FOUND: The namespace has no pending timer with this id, and no finished one that is still retained. */
public class TimerNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public TimerNotFoundException(Problem problem) {
        super(problem);
    }
}