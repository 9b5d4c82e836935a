// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** COLLECTION_FULL: The pending timer of this id, which was created with <code>onConflict: "debounce"</code> and
 * <code>collect</code>, has no room for another payload: it has as many as <code>collect</code>
 * allows, or they would have more than 100 KiB together. Nothing was written. */
public class CollectionFullException extends ConflictException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public CollectionFullException(Problem problem) {
        super(problem);
    }
}