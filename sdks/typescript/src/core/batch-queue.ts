/** Which waiting timers go into the next request. Time is passed in. */

import { BYTES_MAX, ENVELOPE_BYTES, type Item } from "./batches.js";

const ITEMS_PER_REQUEST = 500;
const LINGER_MS = 5;
const REQUESTS_PER_OWNER = 2;
const WAITING_MAX = 10_000;

/** A timer that waits, and who waits for it. */
export interface Entry<Waiter> {
  readonly item: Item;
  readonly waiter: Waiter;
  readonly addedMs: number;
}

/** The timers for one node. */
interface Lane<Waiter> {
  waiting: Entry<Waiter>[];
  requests: number;
}

/** Collects timers by owner until there are enough for a request, or the first has waited long enough. */
export class BatchQueue<Waiter> {
  waiting = 0;
  /** Whether nothing more comes, so that there is nothing to linger for. */
  closing = false;
  private readonly lanes = new Map<string, Lane<Waiter>>();
  /** Timers in requests: two requests with the same one could take effect in either order. */
  private readonly inFlight = new Set<string>();
  /** Of each timer that waits the owner, and how often it waits. */
  private readonly places = new Map<string, { readonly owner: string; times: number }>();

  /** Whether a caller should wait before it adds more. */
  get full(): boolean {
    return this.waiting >= WAITING_MAX;
  }

  /** Whether every timer was taken and settled. */
  get idle(): boolean {
    return this.waiting === 0 && this.inFlight.size === 0;
  }

  /** Appends the timer to those of its owner, or where the same timer already waits: one after the other takes effect, also if
   * its owner has changed meanwhile. */
  add(item: Item, waiter: Waiter, owner: string, addedMs: number): void {
    const place = this.places.get(nameOf(item)) ?? { owner, times: 0 };
    place.times++;
    this.places.set(nameOf(item), place);
    const lane = this.lanes.get(place.owner) ?? { waiting: [], requests: 0 };
    this.lanes.set(place.owner, lane);
    lane.waiting.push({ item, waiter, addedMs });
    this.waiting++;
  }

  /** The owner and the timers of a request to send now. `settled` has to follow. */
  take(nowMs: number): { owner: string; entries: Entry<Waiter>[] } | undefined {
    for (const [owner, lane] of this.lanes) {
      if (this.laneReadyMs(lane) <= nowMs) {
        lane.requests++;
        return { owner, entries: this.taken(lane) };
      }
    }
    return undefined;
  }

  /** When `take` has something, if nothing is added or settled before; infinity: never. */
  readyMs(): number {
    return Math.min(...[...this.lanes.values()].map((lane) => this.laneReadyMs(lane)));
  }

  /** The request of these timers is over. */
  settled(owner: string, entries: readonly Entry<Waiter>[]): void {
    for (const { item } of entries) {
      this.inFlight.delete(nameOf(item));
    }
    const lane = this.lanes.get(owner);
    if (lane !== undefined) {
      lane.requests--;
      if (lane.waiting.length === 0 && lane.requests === 0) {
        this.lanes.delete(owner);
      }
    }
  }

  private laneReadyMs(lane: Lane<Waiter>): number {
    const [first] = lane.waiting;
    if (first === undefined || lane.requests >= REQUESTS_PER_OWNER) {
      return Number.POSITIVE_INFINITY;
    }
    if (!lane.waiting.some(({ item }) => !this.inFlight.has(nameOf(item)))) {
      return Number.POSITIVE_INFINITY;
    }
    if (this.closing || lane.waiting.length >= ITEMS_PER_REQUEST) {
      return Number.NEGATIVE_INFINITY;
    }
    return first.addedMs + LINGER_MS;
  }

  private taken(lane: Lane<Waiter>): Entry<Waiter>[] {
    const taken: Entry<Waiter>[] = [];
    const left: Entry<Waiter>[] = [];
    let bytes = ENVELOPE_BYTES;
    /** Names that wait on: later timers of the same name stay behind them. */
    const blocked = new Set<string>();
    let next = 0;
    for (; next < lane.waiting.length && taken.length < ITEMS_PER_REQUEST; next++) {
      const entry = lane.waiting[next] as Entry<Waiter>;
      const name = nameOf(entry.item);
      const fits = taken.length === 0 || bytes + entry.item.bytes <= BYTES_MAX;
      if (fits && !this.inFlight.has(name) && !blocked.has(name)) {
        taken.push(entry);
        bytes += entry.item.bytes;
        this.inFlight.add(name);
        this.leave(name);
      } else {
        left.push(entry);
        blocked.add(name);
      }
    }
    lane.waiting = [...left, ...lane.waiting.slice(next)];
    this.waiting -= taken.length;
    return taken;
  }

  private leave(name: string): void {
    const place = this.places.get(name);
    if (place !== undefined && --place.times === 0) {
      this.places.delete(name);
    }
  }
}

function nameOf(item: Item): string {
  return `${item.place.namespace}\0${item.place.timerId}`;
}
