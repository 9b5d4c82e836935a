// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** COMMAND_FAILED: The service agent failed to handle the command. It may have taken effect. */
public class CommandFailedException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public CommandFailedException(Problem problem) {
        super(problem);
    }
}