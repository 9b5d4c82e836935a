package dev.tocsin.client;

import dev.tocsin.client.error.MonitorNotFoundException;
import dev.tocsin.client.error.VersionConflictException;
import dev.tocsin.client.model.ListMonitors;
import dev.tocsin.client.model.Monitor;
import dev.tocsin.client.model.MonitorAnswer;
import dev.tocsin.client.model.MonitorHistory;
import dev.tocsin.client.model.MonitorName;
import dev.tocsin.client.model.MonitorPage;
import dev.tocsin.client.model.MonitorPeriod;
import dev.tocsin.client.model.MonitorPeriods;
import dev.tocsin.client.model.MonitorPut;
import dev.tocsin.client.model.MonitorRotated;
import dev.tocsin.client.model.PingEvent;
import dev.tocsin.client.model.PingMonitor;
import dev.tocsin.client.model.PutMonitor;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;

/** They know when jobs should report, and notify when one does not; for programs that do not block. */
public final class AsyncMonitors {
    private static final System.Logger LOG = System.getLogger("dev.tocsin.client");
    /** Characters of an error that are reported. */
    private static final int ERROR_CHARS_MAX = 2_000;
    /** How long a server that is not reached delays a job, before it and after it. */
    static final Duration REPORT_TIMEOUT = Duration.ofSeconds(5);

    private final Steps steps;

    AsyncMonitors(Steps steps) {
        this.steps = steps;
    }

    /**
     * Creates a monitor, or replaces its definition. The answer that creates it has its ping URL, which is never shown again;
     * that of a schedule has none. So a lost answer is not followed by a retry, and {@code rotate} makes another URL.
     *
     * @param monitor its name and definition: one of cron, every and schedule
     * @return the monitor; fails with {@link VersionConflictException} if it has not the expected version; 0: there must be none
     */
    public CompletableFuture<MonitorPut> put(PutMonitor monitor) {
        Call put = Call.of(Operation.PUT_MONITOR, monitor.toJson());
        boolean losesNothing = monitor.schedule().isPresent() && !monitor.expectedVersion().isPresent();
        boolean dry = monitor.dryRun().equals(Field.of(true));
        return steps.ask(losesNothing || dry ? put : put.unsafe(), MonitorPut::fromJson);
    }

    /**
     * Reads a monitor.
     *
     * @param namespace its namespace
     * @param id its id
     * @return the monitor; fails with {@link MonitorNotFoundException} if there is none
     */
    public CompletableFuture<Monitor> get(String namespace, String id) {
        return ask(named(Operation.GET_MONITOR, namespace, id));
    }

    /**
     * Lists monitors.
     *
     * @param query which; its limit is the size of a page
     * @return the monitors
     */
    public AsyncPages<Monitor> list(ListMonitors query) {
        return new AsyncPages<>(after -> {
            ListMonitors page = after == null ? query : query.cursor(after);
            return steps.ask(Call.of(Operation.LIST_MONITORS, page.toJson()), json -> {
                MonitorPage found = MonitorPage.fromJson(json);
                return new Page<>(found.monitors(), found.nextCursor());
            });
        });
    }

    /**
     * Expects nothing until {@link #resume}.
     *
     * @param namespace the monitor's namespace
     * @param id its id
     * @return the monitor; fails with {@link MonitorNotFoundException} if there is none
     */
    public CompletableFuture<Monitor> pause(String namespace, String id) {
        return ask(named(Operation.PAUSE_MONITOR, namespace, id));
    }

    /**
     * Expects reports again, from the next instant on.
     *
     * @param namespace the monitor's namespace
     * @param id its id
     * @return the monitor; fails with {@link MonitorNotFoundException} if there is none
     */
    public CompletableFuture<Monitor> resume(String namespace, String id) {
        return ask(named(Operation.RESUME_MONITOR, namespace, id));
    }

    /**
     * Replaces the ping URL: the former one is refused from the answer on.
     *
     * @param namespace the monitor's namespace
     * @param id its id
     * @return the monitor with its new URL; fails with {@link MonitorNotFoundException} if there is none
     */
    public CompletableFuture<MonitorRotated> rotate(String namespace, String id) {
        return steps.ask(named(Operation.ROTATE_MONITOR, namespace, id), MonitorRotated::fromJson);
    }

    /**
     * Deletes a monitor with its history.
     *
     * @param namespace its namespace
     * @param id its id
     * @return completed when it is done; fails with {@link MonitorNotFoundException} if there is none
     */
    public CompletableFuture<Void> delete(String namespace, String id) {
        return steps.delete(
                named(Operation.DELETE_MONITOR, namespace, id), named(Operation.GET_MONITOR, namespace, id), found -> false);
    }

    /**
     * Reports that the job has begun, succeeded or failed.
     *
     * @param ping the report
     * @return the monitor; fails with {@link MonitorNotFoundException} if there is none
     */
    public CompletableFuture<Monitor> ping(PingMonitor ping) {
        return ask(Call.of(Operation.PING_MONITOR, ping.toJson()));
    }

    /**
     * Lists the monitor's periods, newest first.
     *
     * @param query which; its limit is the size of a page
     * @return the periods
     */
    public AsyncPages<MonitorPeriod> history(MonitorHistory query) {
        return new AsyncPages<>(after -> {
            MonitorHistory page = after == null ? query : query.cursor(after);
            return steps.ask(Call.of(Operation.MONITOR_HISTORY, page.toJson()), json -> {
                MonitorPeriods found = MonitorPeriods.fromJson(json);
                return new Page<>(found.periods(), found.nextCursor());
            });
        });
    }

    /**
     * Calls the job and reports its beginning and its end. A report that can't be sent within 5 s is logged, and changes
     * nothing else.
     *
     * @param namespace the monitor's namespace
     * @param id its id
     * @param job what is monitored
     * @param <T> what the job completes with
     * @return what the job completes with; fails as the job does, which is reported as a failure
     */
    public <T> CompletableFuture<T> run(String namespace, String id, Supplier<CompletableFuture<T>> job) {
        return started(namespace, id)
                .thenCompose(begun -> job.get())
                .handle((result, failure) -> {
                    Throwable cause = failure instanceof CompletionException wrapped ? wrapped.getCause() : failure;
                    return ended(namespace, id, cause)
                            .thenCompose(reported -> cause == null
                                    ? CompletableFuture.completedFuture(result) : CompletableFuture.<T>failedFuture(cause));
                })
                .thenCompose(ended -> ended);
    }

    /** Reports that a job begins; completes normally in any case. */
    CompletableFuture<Void> started(String namespace, String id) {
        return report(PingMonitor.of(namespace, id).event(PingEvent.START));
    }

    /** Reports that a job has ended, with its failure unless that is null; completes normally in any case. */
    CompletableFuture<Void> ended(String namespace, String id, Throwable failure) {
        PingMonitor ping = PingMonitor.of(namespace, id);
        if (failure == null) {
            return report(ping.event(PingEvent.SUCCESS));
        }
        String words = failure.toString();
        String cut = words.substring(0, Math.min(words.length(), ERROR_CHARS_MAX));
        // Through bytes: no request can contain half of a surrogate pair.
        return report(ping.event(PingEvent.FAIL).body(new String(cut.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8)));
    }

    private CompletableFuture<Void> report(PingMonitor ping) {
        Options options = steps.options();
        Duration timeout = options.timeout().compareTo(REPORT_TIMEOUT) < 0 ? options.timeout() : REPORT_TIMEOUT;
        Steps limited = new Steps(steps.session(), new Options(timeout, options.retries()), steps.blocking());
        CompletableFuture<Monitor> sent;
        try {
            sent = new AsyncMonitors(limited).ping(ping);
        } catch (RuntimeException refused) {
            sent = CompletableFuture.failedFuture(refused);
        }
        return sent.handle((monitor, failure) -> {
            if (failure != null) {
                String name = ping.namespace() + "/" + ping.id();
                LOG.log(System.Logger.Level.WARNING, "report to monitor " + name + " not delivered: " + failure);
            }
            return null;
        });
    }

    private CompletableFuture<Monitor> ask(Call call) {
        return steps.ask(call, json -> MonitorAnswer.fromJson(json).monitor());
    }

    private static Call named(Operation operation, String namespace, String id) {
        return Call.of(operation, MonitorName.of(namespace, id).toJson());
    }
}
