// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** MONITOR_NOT_FOUND: The namespace has no monitor of this id; or none has this ping URL. */
public class MonitorNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public MonitorNotFoundException(Problem problem) {
        super(problem);
    }
}