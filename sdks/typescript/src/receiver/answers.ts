/** What a handler can answer. */

import { encodeJson } from "../core/bodies.js";
import { type DurationLike, type InstantLike, toInstant, toMicroseconds } from "../values.js";

/** As much of a response as the server shows; longer reasons would only make responses of batches long. */
const REASON_CHARS_MAX = 200;

/** The HTTP response that a callback gets. Make one with `done`, `rescheduleAt`, `retry` or `fail`. */
export class Answer {
  constructor(
    readonly status: number,
    readonly headers: Readonly<Record<string, string>>,
    readonly body: string,
  ) {}

  /** Whether the server calls again for the same firing. */
  get retries(): boolean {
    return this.status === 503;
  }

  /**
   * Whether the work is done, so that it is not to be done again for the same firing. After `fail` it may be: a replay of the
   * timer has the webhook-id of the run that failed.
   */
  get isDone(): boolean {
    return this.status < 400;
  }
}

/** The work is done: the timer is completed. */
export function done(): Answer {
  return json(200, { ok: true });
}

/**
 * The work is done for now: the timer fires again at the instant, with the payload if one is given. RangeError: it is no
 * instant. InvalidArgument: the payload isn't JSON.
 */
export function rescheduleAt(instant: InstantLike, payload?: unknown): Answer {
  return json(200, { nextExecuteAt: toInstant(instant), payload });
}

/** The work could not be done: the timer's policy retries it, no earlier than after this time. RangeError: it is none. */
export function retry(after?: DurationLike): Answer {
  if (after === undefined) {
    return new Answer(503, {}, "");
  }
  return new Answer(503, { "retry-after": String(Math.ceil(toMicroseconds(after) / 1_000_000)) }, "");
}

/**
 * The work can't be done: the timer fails, without another attempt, until it is replayed. 200 characters of the reason are
 * sent.
 */
export function fail(reason: string): Answer {
  const chars = [...reason]; // which are not parted, as pairs of surrogates would be
  const sent = chars.length > REASON_CHARS_MAX ? `${chars.slice(0, REASON_CHARS_MAX - 1).join("")}…` : reason;
  return json(422, { ok: false, reason: sent });
}

/** A request that is not taken as a callback. */
export function refused(status: number, reason: string): Answer {
  return new Answer(status, { "content-type": "text/plain; charset=utf-8" }, reason);
}

/** The response to a body that no callback has. */
export function tooLong(): Answer {
  return refused(413, "the body is too large for a callback");
}

/** For storing. */
export function toText(answer: Answer): string {
  return JSON.stringify({ status: answer.status, headers: answer.headers, body: answer.body });
}

/** As it was stored. */
export function fromText(text: string): Answer {
  const stored = JSON.parse(text) as Pick<Answer, "status" | "headers" | "body">;
  return new Answer(stored.status, stored.headers, stored.body);
}

function json(status: number, body: object): Answer {
  return new Answer(status, { "content-type": "application/json" }, encodeJson(body));
}
