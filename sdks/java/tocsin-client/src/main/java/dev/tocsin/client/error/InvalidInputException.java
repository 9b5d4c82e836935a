package dev.tocsin.client.error;

/** The request is wrong; repeated as it is, it will be refused again. The fields name what to correct. */
public class InvalidInputException extends ApiException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public InvalidInputException(Problem problem) {
        super(problem);
    }
}
