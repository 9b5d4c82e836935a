// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** INBOX_UNAVAILABLE: The inbox's database can't be asked, lacks the table, or did not answer in time. A replay or
 * deletion may have been done in part. */
public class InboxUnavailableException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public InboxUnavailableException(Problem problem) {
        super(problem);
    }
}