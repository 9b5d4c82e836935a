package dev.tocsin.client;

import dev.tocsin.client.error.ScheduleEndedException;
import dev.tocsin.client.error.ScheduleNotFoundException;
import dev.tocsin.client.model.BackfillSchedule;
import dev.tocsin.client.model.CreateSchedule;
import dev.tocsin.client.model.ListSchedules;
import dev.tocsin.client.model.OccurrenceRun;
import dev.tocsin.client.model.Preview;
import dev.tocsin.client.model.PreviewSchedule;
import dev.tocsin.client.model.ReplaySchedule;
import dev.tocsin.client.model.Schedule;
import dev.tocsin.client.model.ScheduleHistory;
import dev.tocsin.client.model.UpdateSchedule;

/** Schedules: each calls a URL at the instants of a cron expression, or at intervals. */
public final class Schedules {
    private final AsyncSchedules async;

    Schedules(AsyncSchedules async) {
        this.async = async;
    }

    /**
     * Creates a schedule, or changes the one with this id to this definition; an identical one writes nothing. Call it on
     * each start of your program.
     *
     * @param schedule with one of cron and every
     * @return the schedule
     */
    public Schedule create(CreateSchedule schedule) {
        return Run.join(async.create(schedule));
    }

    /**
     * Reads a schedule, also one that has ended and is retained.
     *
     * @param namespace its namespace
     * @param scheduleId its id
     * @return the schedule
     * @throws ScheduleNotFoundException if there is none
     */
    public Schedule get(String namespace, String scheduleId) {
        return Run.join(async.get(namespace, scheduleId));
    }

    /**
     * Changes a schedule.
     *
     * @param change what to change; absent fields stay, {@code Field.ofNull()} removes
     * @return the schedule after the change
     * @throws ScheduleEndedException if it has no more instants
     */
    public Schedule update(UpdateSchedule change) {
        return Run.join(async.update(change));
    }

    /**
     * Ends a schedule.
     *
     * @param namespace its namespace
     * @param scheduleId its id
     * @throws ScheduleEndedException if it had ended before
     */
    public void delete(String namespace, String scheduleId) {
        Run.join(async.delete(namespace, scheduleId));
    }

    /**
     * Lists the schedules of a namespace that have not ended.
     *
     * @param query which schedules; its limit is the size of a page
     * @return the schedules
     */
    public Pages<Schedule> list(ListSchedules query) {
        return new Pages<>(async.list(query));
    }

    /**
     * Skips all instants until the schedule is resumed. An attempt in flight ends; none is retried.
     *
     * @param namespace its namespace
     * @param scheduleId its id
     * @return the schedule
     */
    public Schedule pause(String namespace, String scheduleId) {
        return Run.join(async.pause(namespace, scheduleId));
    }

    /**
     * Goes on with the next instant.
     *
     * @param namespace its namespace
     * @param scheduleId its id
     * @return the schedule
     */
    public Schedule resume(String namespace, String scheduleId) {
        return Run.join(async.resume(namespace, scheduleId));
    }

    /**
     * Fires once, now. A lost answer is not followed by a retry,
     * since that could fire twice: a TransportException with {@code maybeDone}.
     *
     * @param namespace its namespace
     * @param scheduleId its id
     * @return the schedule
     */
    public Schedule trigger(String namespace, String scheduleId) {
        return Run.join(async.trigger(namespace, scheduleId));
    }

    /**
     * Fires the instants of a time in the past. A lost answer is not followed by a retry,
     * since that could fire twice: a TransportException with {@code maybeDone}.
     *
     * @param range which instants
     * @return the schedule
     */
    public Schedule backfill(BackfillSchedule range) {
        return Run.join(async.backfill(range));
    }

    /**
     * Fires failed occurrences again, each under its own webhook-id. A lost answer is not followed by a retry: a
     * TransportException with {@code maybeDone}.
     *
     * @param wanted which occurrences, by their instants
     * @return the schedule
     */
    public Schedule replay(ReplaySchedule wanted) {
        return Run.join(async.replay(wanted));
    }

    /**
     * Shows the next instants of an existing schedule, or of a definition that is only tried.
     *
     * @param query an existing schedule, or a definition
     * @return the instants
     */
    public Preview preview(PreviewSchedule query) {
        return Run.join(async.preview(query));
    }

    /**
     * Lists a schedule's occurrences, newest first.
     *
     * @param query which schedule; its limit is the size of a page
     * @return the occurrences
     */
    public Pages<OccurrenceRun> history(ScheduleHistory query) {
        return new Pages<>(async.history(query));
    }
}
