package dev.tocsin.client.error;

/** The server failed. Report the correlation id to its operator. */
public class ServerErrorException extends ApiException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ServerErrorException(Problem problem) {
        super(problem);
    }
}
