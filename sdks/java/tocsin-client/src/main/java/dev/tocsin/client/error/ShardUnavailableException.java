// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** SHARD_UNAVAILABLE: The timer's shard temporarily has no owner, or the outcome of the write is unknown. */
public class ShardUnavailableException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ShardUnavailableException(Problem problem) {
        super(problem);
    }
}