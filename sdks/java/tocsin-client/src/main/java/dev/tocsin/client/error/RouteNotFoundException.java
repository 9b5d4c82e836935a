// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

/** ROUTE_NOT_FOUND: No operation has this path, or this server has no service agent or no inbox, of which the operation
 * is. */
public class RouteNotFoundException extends NotFoundException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public RouteNotFoundException(Problem problem) {
        super(problem);
    }
}