// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** UNSUPPORTED_MEDIA_TYPE: The body is not declared as JSON in UTF-8, or is compressed. */
public class UnsupportedMediaTypeException extends InvalidInputException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public UnsupportedMediaTypeException(Problem problem) {
        super(problem);
    }
}