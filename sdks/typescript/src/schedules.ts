/** Schedules. */

import { read } from "./core/answers.js";
import { bodyOf } from "./core/bodies.js";
import { ask, remove, update } from "./core/flows.js";
import type { CallOptions, Session } from "./core/session.js";
import {
  encodeBackfillSchedule,
  encodeCreateSchedule,
  encodeListSchedules,
  encodePreviewSchedule,
  encodeReplaySchedule,
  encodeScheduleHistory,
  encodeScheduleName,
  encodeUpdateSchedule,
} from "./generated/codecs.js";
import type {
  BackfillSchedule,
  CreateSchedule,
  ListSchedules,
  OccurrenceRun,
  Preview,
  PreviewSchedule,
  ReplaySchedule,
  Schedule,
  ScheduleHistory,
  ScheduleName,
  UpdateSchedule,
} from "./generated/models.js";
import type { OperationName } from "./generated/operations.js";
import { Pages } from "./pages.js";

/** Schedules: each calls a URL at the instants of a cron expression, or at intervals. */
export class Schedules {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /**
   * Creates a schedule, or changes the one with this id to this definition; an identical one writes nothing. Call it on each
   * start of your program. Give one of `cron` and `every`.
   */
  async create(schedule: CreateSchedule, options?: CallOptions): Promise<Schedule> {
    const { namespace, id } = schedule;
    return update(
      this.session,
      "Schedule",
      { operation: "createSchedule", body: bodyOf(encodeCreateSchedule(schedule)) },
      { operation: "getSchedule", body: bodyOf(encodeScheduleName({ namespace, scheduleId: id })) },
      this.session.limits(options),
    );
  }

  /** The schedule, also one that has ended and is retained. ScheduleNotFound: there is none. */
  async get(name: ScheduleName, options?: CallOptions): Promise<Schedule> {
    return this.named("getSchedule", name, options);
  }

  /** Changes the given members; null removes those that allow it. ScheduleEnded: it has no more instants. */
  async update(change: UpdateSchedule, options?: CallOptions): Promise<Schedule> {
    const { namespace, scheduleId } = change;
    return update(
      this.session,
      "Schedule",
      { operation: "updateSchedule", body: bodyOf(encodeUpdateSchedule(change)) },
      { operation: "getSchedule", body: bodyOf(encodeScheduleName({ namespace, scheduleId })) },
      this.session.limits(options),
    );
  }

  /** Ends the schedule. ScheduleEnded: it had ended before. */
  async delete(name: ScheduleName, options?: CallOptions): Promise<void> {
    const body = bodyOf(encodeScheduleName(name));
    await remove(
      this.session,
      { operation: "deleteSchedule", body },
      { operation: "getSchedule", body },
      (reply) => read("Schedule", reply).status === "ended",
      this.session.limits(options),
    );
  }

  /** All schedules of the namespace; `limit` is the size of a page. */
  list(query: Omit<ListSchedules, "cursor">, options?: CallOptions): Pages<Schedule> {
    return new Pages(async (cursor) => {
      const body = encodeListSchedules({ ...query, cursor });
      const page = await ask(this.session, "SchedulePage", "listSchedules", body, options);
      return { elements: page.schedules, next: page.nextCursor };
    });
  }

  /** Skips all instants until it is resumed. An attempt in flight ends; none is retried. */
  async pause(name: ScheduleName, options?: CallOptions): Promise<Schedule> {
    return this.named("pauseSchedule", name, options);
  }

  /** Goes on with the next instant. */
  async resume(name: ScheduleName, options?: CallOptions): Promise<Schedule> {
    return this.named("resumeSchedule", name, options);
  }

  /**
   * Fires once, now. A lost answer is not followed by a retry, since that could fire twice: TransportError with `maybeDone`.
   */
  async trigger(name: ScheduleName, options?: CallOptions): Promise<Schedule> {
    return ask(this.session, "Schedule", "triggerSchedule", encodeScheduleName(name), options, { unsafe: true });
  }

  /** Fires the instants of a time in the past. A lost answer is not followed by a retry, as in `trigger`. */
  async backfill(range: BackfillSchedule, options?: CallOptions): Promise<Schedule> {
    return ask(this.session, "Schedule", "backfillSchedule", encodeBackfillSchedule(range), options, { unsafe: true });
  }

  /** Fires failed occurrences again, each under its own webhook-id. A lost answer is not followed by a retry, as in `trigger`. */
  async replay(wanted: ReplaySchedule, options?: CallOptions): Promise<Schedule> {
    return ask(this.session, "Schedule", "replaySchedule", encodeReplaySchedule(wanted), options, { unsafe: true });
  }

  /** The next instants of an existing schedule, or of a definition that is only tried. */
  async preview(query: PreviewSchedule, options?: CallOptions): Promise<Preview> {
    return ask(this.session, "Preview", "previewSchedule", encodePreviewSchedule(query), options);
  }

  /** The schedule's occurrences, newest first; `limit` is the size of a page. */
  history(query: Omit<ScheduleHistory, "cursor">, options?: CallOptions): Pages<OccurrenceRun> {
    return new Pages(async (cursor) => {
      const body = encodeScheduleHistory({ ...query, cursor });
      const page = await ask(this.session, "OccurrencePage", "scheduleHistory", body, options);
      return { elements: page.occurrences, next: page.nextCursor };
    });
  }

  private named(operation: OperationName, name: ScheduleName, options: CallOptions | undefined): Promise<Schedule> {
    return ask(this.session, "Schedule", operation, encodeScheduleName(name), options);
  }
}
