package dev.tocsin.client;

import java.time.Duration;

/**
 * The client whose calls return futures. Errors are not wrapped, and canceling a future ends its request. Arguments that
 * can't be sent throw an InvalidArgumentException at once. Long work belongs into the {@code …Async} methods of futures: other calls wait for the thread that reads answers.
 */
public final class AsyncTocsinClient implements AutoCloseable {
    private final Steps steps;

    AsyncTocsinClient(Steps steps) {
        this.steps = steps;
    }

    /** This client for calls that block. */
    AsyncTocsinClient inCallingThread() {
        return new AsyncTocsinClient(steps.inCallingThread());
    }

    /**
     * Timers.
     *
     * @return its operations
     */
    public AsyncTimers timers() {
        return new AsyncTimers(steps);
    }

    /**
     * Schedules.
     *
     * @return its operations
     */
    public AsyncSchedules schedules() {
        return new AsyncSchedules(steps);
    }

    /**
     * Failures.
     *
     * @return its operations
     */
    public AsyncFailures failures() {
        return new AsyncFailures(steps);
    }

    /**
     * Jobs.
     *
     * @return its operations
     */
    public AsyncJobs jobs() {
        return new AsyncJobs(steps);
    }

    /**
     * Namespaces.
     *
     * @return its operations
     */
    public AsyncNamespaces namespaces() {
        return new AsyncNamespaces(steps);
    }

    /**
     * Rules of flows.
     *
     * @return its operations
     */
    public AsyncFlows flows() {
        return new AsyncFlows(steps);
    }

    /**
     * Calendars.
     *
     * @return its operations
     */
    public AsyncCalendars calendars() {
        return new AsyncCalendars(steps);
    }

    /**
     * Monitors.
     *
     * @return its operations
     */
    public AsyncMonitors monitors() {
        return new AsyncMonitors(steps);
    }

    /**
     * Destinations.
     *
     * @return its operations
     */
    public AsyncDestinations destinations() {
        return new AsyncDestinations(steps);
    }

    /**
     * API keys.
     *
     * @return its operations
     */
    public AsyncKeys keys() {
        return new AsyncKeys(steps);
    }

    /**
     * The audit trail.
     *
     * @return its operations
     */
    public AsyncAudit audit() {
        return new AsyncAudit(steps);
    }

    /**
     * The servers.
     *
     * @return its operations
     */
    public AsyncClusterView cluster() {
        return new AsyncClusterView(steps);
    }

    /**
     * The service calls of a tenant.
     *
     * @param tenantId a UUID of version 7
     * @return its operations
     */
    public AsyncCalls calls(String tenantId) {
        return new AsyncCalls(steps, tenantId);
    }

    /**
     * This client with another limit, for single calls. It shares the connections, and is closed with this client.
     *
     * @param timeout how long a call may take with all its retries
     * @return a view of this client
     */
    public AsyncTocsinClient withTimeout(Duration timeout) {
        return new AsyncTocsinClient(new Steps(steps.session(), new Options(timeout, steps.options().retries()), steps.blocking()));
    }

    /**
     * This client with another limit, for single calls. It shares the connections, and is closed with this client.
     *
     * @param retries how often a call is repeated at most; 0 means none
     * @return a view of this client
     */
    public AsyncTocsinClient withRetries(int retries) {
        return new AsyncTocsinClient(new Steps(steps.session(), new Options(steps.options().timeout(), retries), steps.blocking()));
    }

    /** Closes the connections. Calls fail afterwards. */
    @Override
    public void close() {
        steps.session().close();
    }
}
