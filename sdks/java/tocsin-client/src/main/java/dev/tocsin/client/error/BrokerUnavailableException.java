// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** BROKER_UNAVAILABLE: The service agent cannot reach its message broker. The broker may have accepted the command. */
public class BrokerUnavailableException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public BrokerUnavailableException(Problem problem) {
        super(problem);
    }
}