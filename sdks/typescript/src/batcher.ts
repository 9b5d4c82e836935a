/** Collects single creates into requests. */

import { BatchQueue, type Entry } from "./core/batch-queue.js";
import { createChunk, itemOf } from "./core/batches.js";
import type { Session } from "./core/session.js";
import { BatcherClosed, BatcherFull } from "./error-bases.js";
import type { CreateTimer, Timer } from "./generated/models.js";

/** How a batcher is made. */
export interface BatcherOptions {
  /** Whether `add` waits while 10,000 timers wait, the default, or rejects with BatcherFull. */
  readonly block?: boolean | undefined;
}

interface Waiter {
  readonly resolve: (timer: Timer) => void;
  readonly reject: (error: unknown) => void;
}

/** Timers that are added one by one are sent together: 500 in a request, or those of 5 ms. */
export class Batcher {
  private readonly queue = new BatchQueue<Waiter>();
  private readonly block: boolean;
  private readonly forRoom: (() => void)[] = [];
  private readonly forEnd: (() => void)[] = [];
  private alarm: ReturnType<typeof setTimeout> | undefined;

  /** Made by `client.timers.batcher()`. */
  constructor(
    private readonly session: Session,
    options: BatcherOptions = {},
  ) {
    this.block = options.block ?? true;
  }

  /** Resolves to the timer as created; rejects with its error. Await it, or handle errors with `Promise.allSettled`. */
  async add(timer: CreateTimer): Promise<Timer> {
    const item = itemOf(timer);
    // Nothing is awaited if there is room: timers that are added at once keep their order, and `close` finds them.
    while (this.queue.full && !this.queue.closing) {
      if (!this.block) {
        throw new BatcherFull(`${this.queue.waiting} timers wait; add more later, or leave \`block\` as it is`);
      }
      await this.room();
    }
    if (this.queue.closing) {
      throw new BatcherClosed("the batcher is closed; make another");
    }
    return new Promise<Timer>((resolve, reject) => {
      const owner = this.session.router?.urlOf(item.place) ?? "";
      this.queue.add(item, { resolve, reject }, owner, this.session.clock.monotonicMs());
      this.dispatch();
    });
  }

  /** Resolves when fewer than 10,000 timers wait. A loop that does not await `add` awaits this before. */
  async room(): Promise<void> {
    while (this.queue.full && !this.queue.closing) {
      await new Promise<void>((resolve) => this.forRoom.push(resolve));
    }
  }

  /** Sends what waits, and resolves when every timer has its result. */
  async close(): Promise<void> {
    this.queue.closing = true;
    wake(this.forRoom);
    this.dispatch();
    if (!this.queue.idle) {
      await new Promise<void>((resolve) => this.forEnd.push(resolve));
    }
  }

  private dispatch(): void {
    const { clock } = this.session;
    for (let taken = this.queue.take(clock.monotonicMs()); taken !== undefined; ) {
      void this.request(taken.owner, taken.entries);
      taken = this.queue.take(clock.monotonicMs());
    }
    if (!this.queue.full) {
      wake(this.forRoom);
    }
    const readyMs = this.queue.readyMs();
    if (this.alarm === undefined && Number.isFinite(readyMs)) {
      this.alarm = setTimeout(
        () => {
          this.alarm = undefined;
          this.dispatch();
        },
        Math.max(readyMs - clock.monotonicMs(), 0),
      );
    }
  }

  private async request(owner: string, entries: readonly Entry<Waiter>[]): Promise<void> {
    const items = entries.map((entry) => entry.item);
    try {
      await createChunk(
        this.session,
        items,
        (index, { timer, error }) => {
          const waiter = entries[index]?.waiter;
          if (timer === undefined) {
            waiter?.reject(error);
          } else {
            waiter?.resolve(timer);
          }
        },
        this.session.limits(undefined),
      );
    } catch (crash) {
      // Those that have a result keep it.
      for (const { waiter } of entries) {
        waiter.reject(crash);
      }
    } finally {
      this.queue.settled(owner, entries);
      this.dispatch();
      if (this.queue.closing && this.queue.idle) {
        wake(this.forEnd);
      }
    }
  }
}

function wake(waiting: (() => void)[]): void {
  for (const resolve of waiting.splice(0)) {
    resolve();
  }
}
