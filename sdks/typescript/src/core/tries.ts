/** What is reported of each try of a call. */

import { explained, type Logger } from "../logger.js";

/** A try of a call, as `onTry` gets it. */
export interface Try {
  /** The operation's name in the API's document, such as `createTimer`. */
  readonly operation: string;
  /** From 1. */
  readonly number: number;
  /** Of the answer; absent if there was none. */
  readonly status?: number;
  /** Of an answer that is an error. */
  readonly code?: string;
  /** Why there was no answer. */
  readonly error?: string;
  /** How long the try took. */
  readonly seconds: number;
  /** Before the next try; absent if there is none. */
  readonly pauseSeconds?: number;
}

/** Gets each try after it has ended. */
export type OnTry = (attempt: Try) => void;

/** Reports a try. What the hook throws is logged, and does not concern the call. */
export function report(attempt: Try, hook: OnTry | undefined, logger: Logger): void {
  logger.debug?.(lineOf(attempt));
  if (hook !== undefined) {
    const failed = (error: unknown): void => logger.warn?.(`tocsin: onTry failed: ${explained(error)}`);
    // Also what a hook that is asynchronous throws later: unhandled, it would end the program.
    void (async () => hook(attempt))().catch(failed);
  }
}

/** What the logger gets of a try. */
export function lineOf({ operation, number, status, code, error, seconds, pauseSeconds }: Try): string {
  const outcome = error ?? (code ? `${status} ${code}` : String(status));
  const next = pauseSeconds === undefined ? "" : `, next try in ${pauseSeconds.toFixed(3)} s`;
  return `${operation}, try ${number}: ${outcome} in ${seconds.toFixed(3)} s${next}`;
}
