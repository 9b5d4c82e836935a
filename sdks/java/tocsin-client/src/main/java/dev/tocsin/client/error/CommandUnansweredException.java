// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** COMMAND_UNANSWERED: The service agent did not respond in time. The command may have taken effect. */
public class CommandUnansweredException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public CommandUnansweredException(Problem problem) {
        super(problem);
    }
}