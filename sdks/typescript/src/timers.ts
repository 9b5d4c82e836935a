/** Timers. */

import { Batcher, type BatcherOptions } from "./batcher.js";
import { read } from "./core/answers.js";
import { createMany, type ItemResult, resultsOf } from "./core/batches.js";
import { bodyOf, FIRST_TRY } from "./core/bodies.js";
import { ask, remove, update, type WaitOptions, waitFor } from "./core/flows.js";
import type { CallOptions, Session } from "./core/session.js";
import {
  encodeCreateTimer,
  encodeListTimers,
  encodeReplayTimers,
  encodeTimerHistory,
  encodeTimerName,
  encodeUpdateTimer,
} from "./generated/codecs.js";
import type {
  CreateTimer,
  Explanation,
  ListTimers,
  ReplayTimers,
  RunAnswer,
  Timer,
  TimerHistory,
  TimerName,
  TimerStatus,
  UpdateTimer,
} from "./generated/models.js";
import { Pages } from "./pages.js";

/** Which timers to list; `limit` is the size of a page. */
export type TimerFilter = Omit<ListTimers, "cursor" | "status"> & {
  readonly status?: TimerStatus | readonly TimerStatus[] | undefined;
};

/** Timers: each calls a URL at an instant. */
export class Timers {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /**
   * Creates a timer; it is durable when this resolves. Give one of `executeAt` and `delay`, and at most one of `payload` and
   * `body`. A pending timer with the same id is replaced, unless `onConflict` asks otherwise.
   *
   * If an answer is lost, the request is repeated with the same idempotency key: one call creates one timer, which fires
   * once. Give a key of your own if your program itself may repeat the call, as after a crash.
   */
  async create(timer: CreateTimer, options?: CallOptions): Promise<Timer> {
    const automatic = timer.idempotencyKey === undefined;
    const place = { namespace: timer.namespace, timerId: timer.id };
    // The key stands in the body: the server keeps heads of requests that come again, and this one then does.
    const sent = encodeCreateTimer(automatic ? { ...timer, idempotencyKey: crypto.randomUUID() } : timer);
    const firstHeaders = automatic ? FIRST_TRY : {};
    const created = await ask(this.session, "Timer", "createTimer", sent, options, { firstHeaders, place });
    this.session.router?.check(place, created.shardId);
    return created;
  }

  /**
   * Creates a timer that fires once for all creates of its id that follow one another: `delay` after the latest, and at the
   * latest `maxDelay` after the first. Its payload is the latest one; with `collect` it is an array of all of them, and
   * CollectionFull means that it has no room for another until it has fired.
   */
  async debounce(
    timer: Omit<CreateTimer, "executeAt" | "onConflict"> & Required<Pick<CreateTimer, "delay" | "maxDelay">>,
    options?: CallOptions,
  ): Promise<Timer> {
    return this.create({ ...timer, onConflict: "debounce" }, options);
  }

  /** The timer, pending or finished. TimerNotFound: there is none, or it is no longer retained. */
  async get(name: TimerName, options?: CallOptions): Promise<Timer> {
    return ask(this.session, "Timer", "getTimer", encodeTimerName(name), options);
  }

  /**
   * Changes the given members of a pending timer; null removes `headers`, `retryPolicy`, `expireAfter`,
   * `description`, `flowKey` and the hooks.
   * TimerNotPending: it has finished, and not with these members after a lost answer.
   */
  async update(change: UpdateTimer, options?: CallOptions): Promise<Timer> {
    const { namespace, timerId } = change;
    return update(
      this.session,
      "Timer",
      { operation: "updateTimer", body: bodyOf(encodeUpdateTimer(change)), place: change },
      { operation: "getTimer", body: bodyOf(encodeTimerName({ namespace, timerId })) },
      this.session.limits(options),
    );
  }

  /** Cancels a pending timer; an attempt in flight may still arrive. TimerNotPending: it has finished. */
  async delete(name: TimerName, options?: CallOptions): Promise<void> {
    const body = bodyOf(encodeTimerName(name));
    await remove(
      this.session,
      { operation: "deleteTimer", body, place: name },
      { operation: "getTimer", body },
      (reply) => read("Timer", reply).status === "canceled",
      this.session.limits(options),
    );
  }

  /** All timers that match, ordered by `executeAt`. */
  list(filter: TimerFilter, options?: CallOptions): Pages<Timer> {
    const { status } = filter;
    return new Pages(async (cursor) => {
      const query = encodeListTimers({ ...filter, status: typeof status === "string" ? [status] : status, cursor });
      const page = await ask(this.session, "TimerPage", "listTimers", query, options);
      return { elements: page.timers, next: page.nextCursor };
    });
  }

  /** Where the timer is now, and what it waits for. */
  async explain(name: TimerName, options?: CallOptions): Promise<Explanation> {
    return ask(this.session, "Explanation", "explainTimer", encodeTimerName(name), options);
  }

  /** The timer's runs, newest first; `limit` is the size of a page. */
  history(query: Omit<TimerHistory, "cursor">, options?: CallOptions): Pages<RunAnswer> {
    return new Pages(async (cursor) => {
      const body = encodeTimerHistory({ ...query, cursor });
      const page = await ask(this.session, "RunPageAnswer", "timerHistory", body, options);
      return { elements: page.runs, next: page.nextCursor };
    });
  }

  /**
   * Creates any number of timers; the results are in their order. One that can't be created does not affect the others, and
   * its result has the error. Each has an idempotency key, as in `create`. The limits are those of each request.
   */
  async createMany(
    timers: Iterable<CreateTimer> | AsyncIterable<CreateTimer>,
    options?: CallOptions,
  ): Promise<ItemResult[]> {
    return createMany(this.session, timers, this.session.limits(options));
  }

  /**
   * Fires finished timers again, at most 1,000, each under the webhook-id of its latest run: at once, or at the given instant.
   * The results are in the order of the ids; one that can't be replayed does not affect the others. A lost answer is not
   * followed by a retry: TransportError with `maybeDone`.
   */
  async replay(wanted: ReplayTimers, options?: CallOptions): Promise<ItemResult[]> {
    const call = { operation: "replayTimers", body: bodyOf(encodeReplayTimers(wanted)), unsafe: true } as const;
    return resultsOf(await this.session.perform(call, this.session.limits(options)), wanted.ids.length);
  }

  /** Collects single creates into requests; close it at the end. */
  batcher(options?: BatcherOptions): Batcher {
    return new Batcher(this.session, options);
  }

  /** Resolves to the timer once it has finished. WaitTimeout: that took longer than `timeoutMs`. */
  async wait(name: TimerName, options: WaitOptions = {}): Promise<Timer> {
    return waitFor(
      this.session,
      { operation: "getTimer", body: bodyOf(encodeTimerName(name)) },
      (reply) => read("Timer", reply),
      (timer) => (timer.status === "pending" ? (timer.nextAttemptAt ?? timer.executeAt) : undefined),
      `timer ${name.timerId} in ${name.namespace}`,
      options,
    );
  }
}
