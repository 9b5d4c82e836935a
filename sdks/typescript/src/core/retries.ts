/** Whether and when a failed try is repeated. */

import { type ApiError, TransportError } from "../error-bases.js";
import { isUntrusted } from "./transport.js";

const FIRST_DELAY_MS = 100;
const DELAY_MS_MAX = 2_000;
/** In tenths of a retry: 100 retries over all calls of a client while nothing succeeds, and one more for ten successes. */
const BUDGET_MAX = 1_000;
const RETRY_COST = 10;
const SUCCESS_GAIN = 1;
/** 500 is missing: what failed once by a defect fails again. */
const REPEATED_STATUSES: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);
/** Of answers 503 that the server gives before it does anything. */
const NOT_BEGUN: ReadonlySet<string> = new Set(["NOT_READY", "REQUEST_EXPIRED", "NO_ROOM_FOR_BODY"]);

/** What became of a try that did not succeed. */
export type Failure = ApiError | TransportError;

/**
 * Bounds the retries of a client after tries that may have been executed: if most tries fail, repeating each of them makes an
 * overload worse. What was not executed has cost the server little, and pauses are enough.
 */
export class RetryBudget {
  private tenths = BUDGET_MAX;

  /** The retries that are left. */
  get left(): number {
    return this.tenths / RETRY_COST;
  }

  /** Pays for a retry; false if too little is left. */
  spend(): boolean {
    if (this.tenths < RETRY_COST) {
      return false;
    }
    this.tenths -= RETRY_COST;
    return true;
  }

  /** A call succeeded after so many retries that were paid for: they have not made anything worse. */
  earn(paid: number): void {
    this.tenths = Math.min(BUDGET_MAX, this.tenths + (paid === 0 ? SUCCESS_GAIN : paid * RETRY_COST));
  }
}

/** Whether the same request could succeed later. */
export function isRepeated(failure: Failure): boolean {
  return failure instanceof TransportError ? !isUntrusted(failure) : REPEATED_STATUSES.has(failure.status);
}

/** Whether the request may have been executed all the same. */
export function maybeDone(failure: Failure): boolean {
  if (failure instanceof TransportError) {
    return failure.maybeDone;
  }
  return failure.status >= 500 && !(failure.status === 503 && NOT_BEGUN.has(failure.code));
}

/** Milliseconds before the given retry, counted from 0; undefined: in the time left there is none. `random` is from 0 to 1. */
export function retryDelayMs(
  retry: number,
  retryAfterSeconds: number | undefined,
  leftMs: number,
  random: number,
): number | undefined {
  const delayMs =
    retryAfterSeconds === undefined
      ? Math.min(DELAY_MS_MAX, FIRST_DELAY_MS * 2 ** retry) * random
      : retryAfterSeconds * 1_000 * (1 + random / 2);
  return delayMs < leftMs ? delayMs : undefined;
}
