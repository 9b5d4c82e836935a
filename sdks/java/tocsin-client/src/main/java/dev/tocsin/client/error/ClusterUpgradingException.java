// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** CLUSTER_UPGRADING: The request uses a feature that a node of an earlier release cannot read. Nothing was written. */
public class ClusterUpgradingException extends UnavailableException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ClusterUpgradingException(Problem problem) {
        super(problem);
    }
}