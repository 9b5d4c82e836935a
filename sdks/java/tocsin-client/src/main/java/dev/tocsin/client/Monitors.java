package dev.tocsin.client;

import dev.tocsin.client.error.MonitorNotFoundException;
import dev.tocsin.client.error.VersionConflictException;
import dev.tocsin.client.model.ListMonitors;
import dev.tocsin.client.model.Monitor;
import dev.tocsin.client.model.MonitorHistory;
import dev.tocsin.client.model.MonitorPeriod;
import dev.tocsin.client.model.MonitorPut;
import dev.tocsin.client.model.MonitorRotated;
import dev.tocsin.client.model.PingMonitor;
import dev.tocsin.client.model.PutMonitor;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** They know when jobs should report, and notify when one does not. */
public final class Monitors {
    private static final System.Logger LOG = System.getLogger("dev.tocsin.client");

    private final AsyncMonitors async;

    Monitors(AsyncMonitors async) {
        this.async = async;
    }

    /**
     * Creates a monitor, or replaces its definition. The answer that creates it has its ping URL, which is never shown again;
     * that of a schedule has none. So a lost answer is not followed by a retry, and {@code rotate} makes another URL.
     *
     * @param monitor its name and definition: one of cron, every and schedule
     * @return the monitor
     * @throws VersionConflictException if it has not the expected version; 0: there must be none
     */
    public MonitorPut put(PutMonitor monitor) {
        return Run.join(async.put(monitor));
    }

    /**
     * Reads a monitor.
     *
     * @param namespace its namespace
     * @param id its id
     * @return the monitor
     * @throws MonitorNotFoundException if there is none
     */
    public Monitor get(String namespace, String id) {
        return Run.join(async.get(namespace, id));
    }

    /**
     * Lists monitors.
     *
     * @param query which; its limit is the size of a page
     * @return the monitors
     */
    public Pages<Monitor> list(ListMonitors query) {
        return new Pages<>(async.list(query));
    }

    /**
     * Expects nothing until {@link #resume}.
     *
     * @param namespace the monitor's namespace
     * @param id its id
     * @return the monitor
     * @throws MonitorNotFoundException if there is none
     */
    public Monitor pause(String namespace, String id) {
        return Run.join(async.pause(namespace, id));
    }

    /**
     * Expects reports again, from the next instant on.
     *
     * @param namespace the monitor's namespace
     * @param id its id
     * @return the monitor
     * @throws MonitorNotFoundException if there is none
     */
    public Monitor resume(String namespace, String id) {
        return Run.join(async.resume(namespace, id));
    }

    /**
     * Replaces the ping URL: the former one is refused from the answer on.
     *
     * @param namespace the monitor's namespace
     * @param id its id
     * @return the monitor with its new URL
     * @throws MonitorNotFoundException if there is none
     */
    public MonitorRotated rotate(String namespace, String id) {
        return Run.join(async.rotate(namespace, id));
    }

    /**
     * Deletes a monitor with its history.
     *
     * @param namespace its namespace
     * @param id its id
     * @throws MonitorNotFoundException if there is none
     */
    public void delete(String namespace, String id) {
        Run.join(async.delete(namespace, id));
    }

    /**
     * Reports that the job has begun, succeeded or failed.
     *
     * @param ping the report
     * @return the monitor
     * @throws MonitorNotFoundException if there is none
     */
    public Monitor ping(PingMonitor ping) {
        return Run.join(async.ping(ping));
    }

    /**
     * Lists the monitor's periods, newest first.
     *
     * @param query which; its limit is the size of a page
     * @return the periods
     */
    public Pages<MonitorPeriod> history(MonitorHistory query) {
        return new Pages<>(async.history(query));
    }

    /**
     * Calls the job and reports its beginning and its end. A report that can't be sent within 5 s is logged, and changes
     * nothing else; an interrupt of the thread does not end it, and is the job's to see.
     *
     * @param namespace the monitor's namespace
     * @param id its id
     * @param job what is monitored
     * @param <T> what the job returns
     * @return what the job returns
     * @throws Exception what the job throws, which is reported as a failure
     */
    public <T> T run(String namespace, String id, Callable<T> job) throws Exception {
        reported(() -> async.started(namespace, id));
        T result;
        try {
            result = job.call();
        } catch (Throwable failure) {
            reported(() -> async.ended(namespace, id, failure));
            throw failure;
        }
        reported(() -> async.ended(namespace, id, null));
        return result;
    }

    /** Sends a report whether or not the thread is interrupted, which it is afterwards as it was before. Never throws. */
    private static void reported(Supplier<CompletableFuture<Void>> report) {
        boolean interrupted = Thread.interrupted();
        try {
            Run.join(report.get());
        } catch (RuntimeException failed) {
            // An interrupt that came meanwhile ends the report: who stops a thread does not wait for a server.
            LOG.log(System.Logger.Level.WARNING, "report to monitor not delivered", failed);
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
