package dev.tocsin.client;

import java.time.Duration;

/**
 * Speaks to a Tocsin server, or to any node of a cluster. Calls block; an interrupt of the thread cancels the call. Make one
 * client for the whole program: it keeps connections, until it is closed.
 */
public final class TocsinClient implements AutoCloseable {
    private final AsyncTocsinClient async;
    /** Its futures are completed when they are returned. */
    private final AsyncTocsinClient here;

    TocsinClient(AsyncTocsinClient async) {
        this.async = async;
        this.here = async.inCallingThread();
    }

    /**
     * The same calls as futures. It shares the connections, and is closed with this client.
     *
     * @return the asynchronous client
     */
    public AsyncTocsinClient async() {
        return async;
    }

    /**
     * Timers.
     *
     * @return its operations
     */
    public Timers timers() {
        return new Timers(here.timers());
    }

    /**
     * Schedules.
     *
     * @return its operations
     */
    public Schedules schedules() {
        return new Schedules(here.schedules());
    }

    /**
     * Failures.
     *
     * @return its operations
     */
    public Failures failures() {
        return new Failures(here.failures());
    }

    /**
     * Jobs.
     *
     * @return its operations
     */
    public Jobs jobs() {
        return new Jobs(here.jobs());
    }

    /**
     * Namespaces.
     *
     * @return its operations
     */
    public Namespaces namespaces() {
        return new Namespaces(here.namespaces());
    }

    /**
     * Rules of flows.
     *
     * @return its operations
     */
    public Flows flows() {
        return new Flows(here.flows());
    }

    /**
     * Calendars.
     *
     * @return its operations
     */
    public Calendars calendars() {
        return new Calendars(here.calendars());
    }

    /**
     * Monitors.
     *
     * @return its operations
     */
    public Monitors monitors() {
        return new Monitors(here.monitors());
    }

    /**
     * Destinations.
     *
     * @return its operations
     */
    public Destinations destinations() {
        return new Destinations(here.destinations());
    }

    /**
     * API keys.
     *
     * @return its operations
     */
    public Keys keys() {
        return new Keys(here.keys());
    }

    /**
     * The audit trail.
     *
     * @return its operations
     */
    public Audit audit() {
        return new Audit(here.audit());
    }

    /**
     * The servers.
     *
     * @return its operations
     */
    public ClusterView cluster() {
        return new ClusterView(here.cluster());
    }

    /**
     * The service calls of a tenant.
     *
     * @param tenantId a UUID of version 7
     * @return its operations
     */
    public Calls calls(String tenantId) {
        return new Calls(here.calls(tenantId));
    }

    /**
     * This client with another limit, for single calls. It shares the connections, and is closed with this client.
     *
     * @param timeout how long a call may take with all its retries
     * @return a view of this client
     */
    public TocsinClient withTimeout(Duration timeout) {
        return new TocsinClient(async.withTimeout(timeout));
    }

    /**
     * This client with another limit, for single calls. It shares the connections, and is closed with this client.
     *
     * @param retries how often a call is repeated at most; 0 means none
     * @return a view of this client
     */
    public TocsinClient withRetries(int retries) {
        return new TocsinClient(async.withRetries(retries));
    }

    /** Closes the connections. Calls fail afterwards. */
    @Override
    public void close() {
        async.close();
    }
}
