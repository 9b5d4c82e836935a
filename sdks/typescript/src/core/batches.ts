/** Creates many timers: in requests of bounded size, each timer with its own key and result. */

import { ApiError, InvalidArgument, TransportError } from "../error-bases.js";
import { encodeCreateTimer } from "../generated/codecs.js";
import type { BatchResult, CreateTimer, Timer } from "../generated/models.js";
import { errorOfItem, foreign, read } from "./answers.js";
import { encodeJson, FIRST_TRY, remaining } from "./bodies.js";
import type { Place } from "./ids.js";
import { type Failure, isRepeated, maybeDone, retryDelayMs } from "./retries.js";
import type { Limits, Session } from "./session.js";
import type { Reply } from "./transport.js";

const ITEMS_MAX = 1_000;
export const BYTES_MAX = 8 * 1024 * 1024;
/** Of a request around its timers. */
export const ENVELOPE_BYTES = '{"timers":[]}'.length;
const UTF8 = new TextEncoder();

/** A timer as it is sent, with its key. */
export interface Item {
  readonly place: Place;
  /** The body, so many milliseconds after the first try. */
  readonly body: (elapsedMs: number) => string;
  /** Of the body, and a comma. */
  readonly bytes: number;
  /** Whether the key was made here, so that no earlier request can have used it. */
  readonly automatic: boolean;
}

/** A timer of a batch that was created. */
export interface Created {
  readonly timer: Timer;
  readonly error?: undefined;
  /** With `onConflict: "keep"`: the timer existed, and nothing was written. */
  readonly existing: boolean;
  /** An earlier request with the same idempotency key has created it. */
  readonly replayed: boolean;
}

/** A timer of a batch that was not created, and why. */
export interface NotCreated {
  readonly timer?: undefined;
  /** InvalidArgument: it can't be written as a request, so it was not sent. */
  readonly error: ApiError | TransportError | InvalidArgument;
}

/** What became of one timer of a batch. */
export type ItemResult = Created | NotCreated;

/** Gets the place of a timer in its batch, and what became of it. */
type Settle = (index: number, result: ItemResult) => void;

/** Gives the timer a key, if it has none. InvalidArgument: it can't be sent. */
export function itemOf(timer: CreateTimer): Item {
  try {
    const automatic = timer.idempotencyKey === undefined;
    const body = encodeCreateTimer(automatic ? { ...timer, idempotencyKey: crypto.randomUUID() } : timer);
    const text = encodeJson(body);
    return {
      place: { namespace: timer.namespace, timerId: timer.id },
      body: (elapsedMs) => (elapsedMs === 0 ? text : encodeJson(remaining(body, elapsedMs))),
      bytes: UTF8.encode(text).length + 1,
      automatic,
    };
  } catch (error) {
    // Also what the caller's own objects throw: the other timers of the batch have nothing to do with it.
    throw error instanceof InvalidArgument
      ? error
      : new InvalidArgument(`the timer can't be written as a request: ${(error as Error).message}`, { cause: error });
  }
}

/** The results, in the timers' order. A failed request is the result of all its timers, and the next one follows. */
export async function createMany(
  session: Session,
  timers: Iterable<CreateTimer> | AsyncIterable<CreateTimer>,
  limits: Limits,
): Promise<ItemResult[]> {
  const results: ItemResult[] = [];
  for await (const { items, indexes } of chunks(timers, results)) {
    const settle: Settle = (n, result) => {
      results[indexes[n] ?? 0] = result;
    };
    await createChunk(session, items, settle, limits);
  }
  return results;
}

/** One request for each owner, if owners are asked directly, else one. Each timer is settled once; what the server or the
 * network did is not thrown. */
export async function createChunk(
  session: Session,
  items: readonly Item[],
  settle: Settle,
  limits: Limits,
): Promise<void> {
  const groups = new Map<string, number[]>();
  for (const [index, item] of items.entries()) {
    const url = session.router === undefined ? "" : await session.ownerOf(item.place, limits);
    const group = groups.get(url);
    if (group === undefined) {
      groups.set(url, [index]);
    } else {
      group.push(index);
    }
  }
  await Promise.all([...groups.values()].map((group) => createGroup(session, items, group, settle, limits)));
}

/** The timers of a request, and their places among all. */
interface Chunk {
  readonly items: Item[];
  readonly indexes: number[];
}

/** The results of those that can't be sent are added at once. */
async function* chunks(
  timers: Iterable<CreateTimer> | AsyncIterable<CreateTimer>,
  results: ItemResult[],
): AsyncGenerator<Chunk> {
  let chunk: Chunk = { items: [], indexes: [] };
  let bytes = ENVELOPE_BYTES;
  let index = 0;
  for await (const timer of timers) {
    let item: Item;
    try {
      item = itemOf(timer);
    } catch (error) {
      results[index++] = { error: error as InvalidArgument };
      continue;
    }
    const { length } = chunk.items;
    if (length > 0 && (length === ITEMS_MAX || bytes + item.bytes > BYTES_MAX)) {
      yield chunk;
      chunk = { items: [], indexes: [] };
      bytes = ENVELOPE_BYTES;
    }
    chunk.items.push(item);
    chunk.indexes.push(index++);
    bytes += item.bytes;
  }
  if (chunk.items.length > 0) {
    yield chunk;
  }
}

/** Timers that are refused for the moment go again, without those that have a result. */
async function createGroup(
  session: Session,
  items: readonly Item[],
  group: readonly number[],
  settle: Settle,
  limits: Limits,
): Promise<void> {
  const { clock } = session;
  const started = clock.monotonicMs();
  let waiting = group;
  let paid = 0;
  for (let retry = 0; waiting.length > 0; retry++) {
    const elapsedMs = clock.monotonicMs() - started;
    const left = { ...limits, timeoutMs: Math.max(limits.timeoutMs - elapsedMs, 1) };
    const sent = waiting.flatMap((index) => items[index] ?? []);
    const results = await request(session, sent, retry, elapsedMs, left);
    const pauseMs =
      retry < limits.retries && !(results instanceof Error)
        ? retryDelayMs(retry, undefined, limits.timeoutMs - (clock.monotonicMs() - started), clock.random())
        : undefined;
    const refused = new Map(
      waiting.flatMap((index, n): [number, ApiError][] => {
        const { error } = resultAt(results, n);
        return error instanceof ApiError && isRepeated(error) ? [[index, error]] : [];
      }),
    );
    const isPaid = [...refused.values()].some(maybeDone);
    const isRepeatedNow = refused.size > 0 && pauseMs !== undefined && (!isPaid || session.budget.spend());
    for (const [n, index] of waiting.entries()) {
      if (!(isRepeatedNow && refused.has(index))) {
        settle(index, resultAt(results, n));
      }
    }
    if (!isRepeatedNow) {
      if (refused.size === 0 && paid > 0) {
        session.budget.earn(paid);
      }
      return;
    }
    paid += isPaid ? 1 : 0;
    waiting = [...refused.keys()];
    await clock.sleep(pauseMs, limits.signal);
  }
}

/** What became of each of so many timers, in the order of the request. */
export function resultsOf(reply: Reply, count: number): ItemResult[] {
  const { results } = read("BatchResults", reply);
  if (results.length !== count) {
    throw foreign(reply, "it has another number of results than the request has timers");
  }
  return results.map((each, n) => {
    const result = resultOf(each);
    if (result === undefined) {
      throw foreign(reply, `its result ${n} has neither a timer nor an error`);
    }
    return result;
  });
}

/** What became of each timer, or of the request with all its retries. */
async function request(
  session: Session,
  items: readonly Item[],
  retry: number,
  elapsedMs: number,
  limits: Limits,
): Promise<readonly ItemResult[] | Failure> {
  const first = retry === 0 && items.every((item) => item.automatic);
  try {
    const reply = await session.perform(
      {
        operation: "batchCreateTimers",
        body: (sinceMs) => `{"timers":[${items.map((item) => item.body(elapsedMs + sinceMs)).join(",")}]}`,
        firstHeaders: first ? FIRST_TRY : {},
        // Retries go to the client's own URL.
        place: retry === 0 ? items[0]?.place : undefined,
      },
      limits,
    );
    const results = resultsOf(reply, items.length);
    return results.map((result, n) => {
      const place = items[n]?.place;
      if (result.timer !== undefined && place !== undefined) {
        session.router?.check(place, result.timer.shardId);
      }
      return result;
    });
  } catch (error) {
    if (error instanceof ApiError || error instanceof TransportError) {
      return error;
    }
    throw error; // the signal's reason
  }
}

function resultOf({ timer, error, existing = false, replayed = false }: BatchResult): ItemResult | undefined {
  if (error) {
    return { error: errorOfItem(error) };
  }
  return timer ? { timer, existing, replayed } : undefined;
}

function resultAt(results: readonly ItemResult[] | Failure, index: number): ItemResult {
  return results instanceof Error ? { error: results } : (results[index] as ItemResult);
}
