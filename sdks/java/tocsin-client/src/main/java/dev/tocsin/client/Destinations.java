package dev.tocsin.client;

import dev.tocsin.client.model.Destination;
import dev.tocsin.client.model.DestinationList;
import dev.tocsin.client.model.ListDestinations;

/** The hosts to which timers are sent. */
public final class Destinations {
    private final AsyncDestinations async;

    Destinations(AsyncDestinations async) {
        this.async = async;
    }

    /**
     * Lists destinations in use lately, and those that are paused, of all nodes: first those that are paused, those with an open
     * breaker, and those for which most timers wait.
     *
     * @param wanted how many at most
     * @return the destinations, and how many more there are
     */
    public DestinationList list(ListDestinations wanted) {
        return Run.join(async.list(wanted));
    }

    /**
     * Lets no attempt to a destination begin on any node until {@link #resume}; timers wait, without using up attempts.
     *
     * @param destination an http or https URL, of which scheme, host and port count
     * @return the destination
     */
    public Destination pause(String destination) {
        return Run.join(async.pause(destination));
    }

    /**
     * Ends a pause.
     *
     * @param destination an http or https URL, of which scheme, host and port count
     * @return the destination
     */
    public Destination resume(String destination) {
        return Run.join(async.resume(destination));
    }

    /**
     * Has each node whose breaker is open try one waiting timer at once; a success closes the breaker.
     *
     * @param destination an http or https URL, of which scheme, host and port count
     * @return the destination
     */
    public Destination probe(String destination) {
        return Run.join(async.probe(destination));
    }
}
