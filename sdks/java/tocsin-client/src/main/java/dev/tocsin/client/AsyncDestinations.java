package dev.tocsin.client;

import dev.tocsin.client.model.Destination;
import dev.tocsin.client.model.DestinationList;
import dev.tocsin.client.model.DestinationName;
import dev.tocsin.client.model.ListDestinations;
import java.util.concurrent.CompletableFuture;

/** The hosts to which timers are sent; for programs that do not block. */
public final class AsyncDestinations {
    private final Steps steps;

    AsyncDestinations(Steps steps) {
        this.steps = steps;
    }

    /**
     * Lists destinations in use lately, and those that are paused, of all nodes: first those that are paused, those with an open
     * breaker, and those for which most timers wait.
     *
     * @param wanted how many at most
     * @return the destinations, and how many more there are
     */
    public CompletableFuture<DestinationList> list(ListDestinations wanted) {
        return steps.ask(Call.of(Operation.LIST_DESTINATIONS, wanted.toJson()), DestinationList::fromJson);
    }

    /**
     * Lets no attempt to a destination begin on any node until {@link #resume}; timers wait, without using up attempts.
     *
     * @param destination an http or https URL, of which scheme, host and port count
     * @return the destination
     */
    public CompletableFuture<Destination> pause(String destination) {
        return change(Operation.PAUSE_DESTINATION, destination);
    }

    /**
     * Ends a pause.
     *
     * @param destination an http or https URL, of which scheme, host and port count
     * @return the destination
     */
    public CompletableFuture<Destination> resume(String destination) {
        return change(Operation.RESUME_DESTINATION, destination);
    }

    /**
     * Has each node whose breaker is open try one waiting timer at once; a success closes the breaker.
     *
     * @param destination an http or https URL, of which scheme, host and port count
     * @return the destination
     */
    public CompletableFuture<Destination> probe(String destination) {
        return change(Operation.PROBE_DESTINATION, destination);
    }

    private CompletableFuture<Destination> change(Operation operation, String destination) {
        return steps.ask(Call.of(operation, DestinationName.of(destination).toJson()), Destination::fromJson);
    }
}
