// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** NO_ROOM_FOR_BODY: Request bodies that are still arriving use all the memory reserved for them. */
public class NoRoomForBodyException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public NoRoomForBodyException(Problem problem) {
        super(problem);
    }
}