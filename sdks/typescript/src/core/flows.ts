/** Calls that are more than one request: those that may find their own work done, and those that wait. */

import type { Sent } from "../codec.js";
import { ApiError, Conflict, NotFound, TransportError, WaitTimeout } from "../error-bases.js";
import type { Answers } from "../generated/codecs.js";
import type { OperationName } from "../generated/operations.js";
import { parseInstant } from "../values.js";
import { read, readNothing } from "./answers.js";
import { bodyOf } from "./bodies.js";
import { type Failure, isRepeated } from "./retries.js";
import type { Call, CallOptions, Limits, Session } from "./session.js";
import type { Reply } from "./transport.js";
import { isWritten } from "./updates.js";

const WAIT_POLL_FIRST_MS = 100;
const WAIT_POLL_MS_MAX = 2_000;
/** What the last read has, at the end of the time. */
const WAIT_READ_MS_MIN = 2_000;
/** Before the instant: what is awaited can be canceled or changed meanwhile, and the server's clock can differ. */
const WAIT_SLEEP_MS_MAX = 30_000;
/** With a clock that a test may move at any time. */
const WAIT_SLEEP_MOVABLE_MS_MAX = 1_000;

/** How long to wait. */
export interface WaitOptions {
  /** WaitTimeout after that; by default it waits for as long as it takes. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Asks for an answer of this name. */
export async function ask<Name extends keyof Answers>(
  session: Session,
  answer: Name,
  operation: OperationName,
  body: Sent,
  options: CallOptions | undefined,
  more: Partial<Call> = {},
): Promise<Answers[Name]> {
  const reply = await session.perform({ operation, body: bodyOf(body), ...more }, session.limits(options));
  return read(answer, reply);
}

/** Deletes; where an earlier try's answer was lost, a refusal can mean that this try succeeded. */
export async function remove(
  session: Session,
  call: Call,
  get: Call,
  isGone: (reply: Reply) => boolean,
  limits: Limits,
): Promise<void> {
  const tries = { maybeDone: false };
  try {
    readNothing(await session.perform(call, limits, tries));
  } catch (error) {
    const refused = error instanceof NotFound || error instanceof Conflict;
    if (!(refused && tries.maybeDone && (await isDone(session, get, isGone, limits)))) {
      throw error;
    }
  }
}

async function isDone(
  session: Session,
  get: Call,
  isGone: (reply: Reply) => boolean,
  limits: Limits,
): Promise<boolean> {
  try {
    return isGone(await session.perform(get, limits));
  } catch (error) {
    if (error instanceof NotFound) {
      return true;
    }
    throw error;
  }
}

/**
 * Updates or puts; where an earlier try's answer was lost, a refusal can mean that it succeeded: the object has finished since,
 * or has no longer the version that is expected. Then what is stored has the members that were sent.
 */
export async function update<Name extends keyof Answers>(
  session: Session,
  answer: Name,
  call: Call,
  get: Call,
  limits: Limits,
): Promise<Answers[Name]> {
  const tries = { maybeDone: false };
  try {
    return read(answer, await session.perform(call, limits, tries));
  } catch (refused) {
    if (!(tries.maybeDone && (refused instanceof NotFound || refused instanceof Conflict))) {
      throw refused;
    }
    const stored = await storedNow(session, answer, get, limits);
    if (stored === undefined || !isWritten(stored, JSON.parse(call.body?.(0) ?? "{}"), refused)) {
      throw refused;
    }
    return stored;
  }
}

/** Undefined: there is none. */
async function storedNow<Name extends keyof Answers>(
  session: Session,
  answer: Name,
  get: Call,
  limits: Limits,
): Promise<Answers[Name] | undefined> {
  try {
    return read(answer, await session.perform(get, limits));
  } catch (error) {
    if (error instanceof NotFound) {
      return undefined;
    }
    throw error;
  }
}

/**
 * Reads until it has ended. `dueAt` returns the instant before which it can't. A server that is away for a while may come back
 * within the time; without a limit, that of a call decides. WaitTimeout: the time is over.
 */
export async function waitFor<Found>(
  session: Session,
  call: Call,
  found: (reply: Reply) => Found,
  dueAt: (found: Found) => string | undefined,
  what: string,
  { timeoutMs, signal }: WaitOptions,
): Promise<Found> {
  const { clock } = session;
  const end = timeoutMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonicMs() + timeoutMs;
  let pollMs = WAIT_POLL_FIRST_MS;
  for (;;) {
    const reply = await readWithin(session, call, end, signal);
    if (reply instanceof Error) {
      const leftMs = end - clock.monotonicMs();
      if (leftMs <= 0) {
        throw new WaitTimeout(`${what} has not finished in time: ${reply.message}`, { cause: reply });
      }
      await clock.sleep(Math.min(pollMs, leftMs), signal);
      pollMs = Math.min(pollMs * 2, WAIT_POLL_MS_MAX);
      continue;
    }
    const seen = found(reply);
    const due = dueAt(seen);
    if (due === undefined) {
      return seen;
    }
    // Only `tocsin dev` sends it, whose clock can be moved.
    const shown = reply.headers.get("tocsin-now");
    const aheadMs = msOf(due) - (shown === null ? clock.nowMs() : msOf(shown));
    const sleepMs = shown === null ? WAIT_SLEEP_MS_MAX : WAIT_SLEEP_MOVABLE_MS_MAX;
    const pauseMs = Math.min(aheadMs > 0 ? aheadMs : pollMs, sleepMs);
    pollMs = aheadMs > 0 ? WAIT_POLL_FIRST_MS : Math.min(pollMs * 2, WAIT_POLL_MS_MAX);
    const leftMs = end - clock.monotonicMs();
    if (leftMs <= 0) {
      throw new WaitTimeout(`${what} has not finished in time`);
    }
    await clock.sleep(Math.min(pauseMs, leftMs), signal);
  }
}

/** The reply, or the error after which another read may succeed before the end. */
async function readWithin(
  session: Session,
  call: Call,
  end: number,
  signal: AbortSignal | undefined,
): Promise<Reply | Failure> {
  const limits = session.limits({ signal });
  const leftMs = Math.max(end - session.clock.monotonicMs(), WAIT_READ_MS_MIN);
  try {
    return await session.perform(call, { ...limits, timeoutMs: Math.min(limits.timeoutMs, leftMs) });
  } catch (error) {
    const mayEnd = error instanceof ApiError || error instanceof TransportError;
    if (mayEnd && isRepeated(error) && end < Number.POSITIVE_INFINITY) {
      return error;
    }
    throw error;
  }
}

function msOf(instant: string): number {
  return Number(parseInstant(instant)) / 1_000;
}
