// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** TOO_MANY_TAGS: The service call already has the maximum number of tags. */
public class TooManyTagsException extends InvalidInputException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public TooManyTagsException(Problem problem) {
        super(problem);
    }
}