/** Bodies of requests. */

import type { Sent } from "../codec.js";
import { formatDuration, parseDuration } from "../values.js";

/** Declares that no earlier try can have been executed: the server needs no look-up. */
export const FIRST_TRY = { "tocsin-first-try": "1" } as const;

/** JSON. TypeError: it can't be written so, as with a BigInt or a circle. */
export function encodeJson(value: unknown): string {
  return JSON.stringify(value);
}

/** Renders the body of each try, with what is left of its delay. */
export function bodyOf(sent: Sent): (elapsedMs: number) => string {
  return (elapsedMs) => encodeJson(elapsedMs === 0 ? sent : remaining(sent, elapsedMs));
}

/** The body with what is left of its delay, so that a retry means the same instant. */
export function remaining(body: Sent, elapsedMs: number): Sent {
  const delay = body["delay"];
  if (typeof delay !== "string") {
    return body;
  }
  try {
    const leftUs = parseDuration(delay) - Math.round(elapsedMs * 1_000);
    return { ...body, delay: formatDuration(Math.max(leftUs, 0)) };
  } catch {
    return body; // the server reports what is wrong with it
  }
}
