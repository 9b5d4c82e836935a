package dev.tocsin.client.error;

/** There is no such object. */
public class NotFoundException extends ApiException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public NotFoundException(Problem problem) {
        super(problem);
    }
}
