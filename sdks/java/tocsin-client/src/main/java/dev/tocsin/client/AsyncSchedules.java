package dev.tocsin.client;

import dev.tocsin.client.error.ScheduleEndedException;
import dev.tocsin.client.error.ScheduleNotFoundException;
import dev.tocsin.client.model.BackfillSchedule;
import dev.tocsin.client.model.CreateSchedule;
import dev.tocsin.client.model.ListSchedules;
import dev.tocsin.client.model.OccurrencePage;
import dev.tocsin.client.model.OccurrenceRun;
import dev.tocsin.client.model.Preview;
import dev.tocsin.client.model.PreviewSchedule;
import dev.tocsin.client.model.ReplaySchedule;
import dev.tocsin.client.model.Schedule;
import dev.tocsin.client.model.ScheduleHistory;
import dev.tocsin.client.model.ScheduleName;
import dev.tocsin.client.model.SchedulePage;
import dev.tocsin.client.model.UpdateSchedule;
import java.util.concurrent.CompletableFuture;

/** Schedules: each calls a URL at the instants of a cron expression, or at intervals; for programs that do not block. */
public final class AsyncSchedules {
    private final Steps steps;

    AsyncSchedules(Steps steps) {
        this.steps = steps;
    }

    /**
     * Creates a schedule, or changes the one with this id to this definition; an identical one writes nothing. Call it on
     * each start of your program.
     *
     * @param schedule with one of cron and every
     * @return the schedule
     */
    public CompletableFuture<Schedule> create(CreateSchedule schedule) {
        Call get = Call.of(Operation.GET_SCHEDULE, ScheduleName.of(schedule.namespace(), schedule.id()).toJson());
        return steps.update(Call.of(Operation.CREATE_SCHEDULE, schedule.toJson()), get, Schedule::fromJson);
    }

    /**
     * Reads a schedule, also one that has ended and is retained.
     *
     * @param namespace its namespace
     * @param scheduleId its id
     * @return the schedule; fails with {@link ScheduleNotFoundException} if there is none
     */
    public CompletableFuture<Schedule> get(String namespace, String scheduleId) {
        return steps.ask(Call.of(Operation.GET_SCHEDULE, ScheduleName.of(namespace, scheduleId).toJson()),
                Schedule::fromJson);
    }

    /**
     * Changes a schedule.
     *
     * @param change what to change; absent fields stay, {@code Field.ofNull()} removes
     * @return the schedule after the change; fails with {@link ScheduleEndedException} if it has no more instants
     */
    public CompletableFuture<Schedule> update(UpdateSchedule change) {
        Call get = Call.of(Operation.GET_SCHEDULE, ScheduleName.of(change.namespace(), change.scheduleId()).toJson());
        return steps.update(Call.of(Operation.UPDATE_SCHEDULE, change.toJson()), get, Schedule::fromJson);
    }

    /**
     * Ends a schedule.
     *
     * @param namespace its namespace
     * @param scheduleId its id
     * @return completed when it is done; fails with {@link ScheduleEndedException} if it had ended before
     */
    public CompletableFuture<Void> delete(String namespace, String scheduleId) {
        Json name = ScheduleName.of(namespace, scheduleId).toJson();
        Call get = Call.of(Operation.GET_SCHEDULE, name);
        return steps.delete(
                Call.of(Operation.DELETE_SCHEDULE, name), get, found -> found.read("status", Json::asString).equals("ended"));
    }

    /**
     * Lists the schedules of a namespace that have not ended.
     *
     * @param query which schedules; its limit is the size of a page
     * @return the schedules
     */
    public AsyncPages<Schedule> list(ListSchedules query) {
        return new AsyncPages<>(after -> {
            ListSchedules page = after == null ? query : query.cursor(after);
            return steps.ask(
                    Call.of(Operation.LIST_SCHEDULES, page.toJson()),
                    json -> {
                        SchedulePage found = SchedulePage.fromJson(json);
                        return new Page<>(found.schedules(), found.nextCursor());
                    });
        });
    }

    /**
     * Skips all instants until the schedule is resumed. An attempt in flight ends; none is retried.
     *
     * @param namespace its namespace
     * @param scheduleId its id
     * @return the schedule
     */
    public CompletableFuture<Schedule> pause(String namespace, String scheduleId) {
        return steps.ask(Call.of(Operation.PAUSE_SCHEDULE, ScheduleName.of(namespace, scheduleId).toJson()),
                Schedule::fromJson);
    }

    /**
     * Goes on with the next instant.
     *
     * @param namespace its namespace
     * @param scheduleId its id
     * @return the schedule
     */
    public CompletableFuture<Schedule> resume(String namespace, String scheduleId) {
        return steps.ask(Call.of(Operation.RESUME_SCHEDULE, ScheduleName.of(namespace, scheduleId).toJson()),
                Schedule::fromJson);
    }

    /**
     * Fires once, now. A lost answer is not followed by a retry,
     * since that could fire twice: a TransportException with {@code maybeDone}.
     *
     * @param namespace its namespace
     * @param scheduleId its id
     * @return the schedule
     */
    public CompletableFuture<Schedule> trigger(String namespace, String scheduleId) {
        return steps.ask(Call.of(Operation.TRIGGER_SCHEDULE, ScheduleName.of(namespace, scheduleId).toJson()).unsafe(),
                Schedule::fromJson);
    }

    /**
     * Fires the instants of a time in the past. A lost answer is not followed by a retry,
     * since that could fire twice: a TransportException with {@code maybeDone}.
     *
     * @param range which instants
     * @return the schedule
     */
    public CompletableFuture<Schedule> backfill(BackfillSchedule range) {
        return steps.ask(Call.of(Operation.BACKFILL_SCHEDULE, range.toJson()).unsafe(), Schedule::fromJson);
    }

    /**
     * Fires failed occurrences again, each under its own webhook-id. A lost answer is not followed by a retry: a
     * TransportException with {@code maybeDone}.
     *
     * @param wanted which occurrences, by their instants
     * @return the schedule
     */
    public CompletableFuture<Schedule> replay(ReplaySchedule wanted) {
        return steps.ask(Call.of(Operation.REPLAY_SCHEDULE, wanted.toJson()).unsafe(), Schedule::fromJson);
    }

    /**
     * Shows the next instants of an existing schedule, or of a definition that is only tried.
     *
     * @param query an existing schedule, or a definition
     * @return the instants
     */
    public CompletableFuture<Preview> preview(PreviewSchedule query) {
        return steps.ask(Call.of(Operation.PREVIEW_SCHEDULE, query.toJson()), Preview::fromJson);
    }

    /**
     * Lists a schedule's occurrences, newest first.
     *
     * @param query which schedule; its limit is the size of a page
     * @return the occurrences
     */
    public AsyncPages<OccurrenceRun> history(ScheduleHistory query) {
        return new AsyncPages<>(after -> {
            ScheduleHistory page = after == null ? query : query.cursor(after);
            return steps.ask(
                    Call.of(Operation.SCHEDULE_HISTORY, page.toJson()),
                    json -> {
                        OccurrencePage found = OccurrencePage.fromJson(json);
                        return new Page<>(found.occurrences(), found.nextCursor());
                    });
        });
    }
}
