/** Bodies of requests. */

import type { Sent } from "../codec.js";
import { InvalidArgument } from "../error-bases.js";
import { formatDuration, parseDuration } from "../values.js";
import { restored } from "./exact.js";

/** Declares that no earlier try can have been executed: the server needs no look-up. */
export const FIRST_TRY = { "tocsin-first-try": "1" } as const;

/** It has no UTF-8, and the server would refuse the whole request. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * JSON. Members that are undefined stay out, as everywhere in JavaScript. InvalidArgument, which names the place: a value
 * can't be written so, or would silently be written as another one, such as NaN as null.
 */
export function encodeJson(value: unknown): string {
  let wrong: string | undefined;
  try {
    const text = JSON.stringify(value); // ends where the value refers to itself, which the walk below would not
    wrong = faultOf(value);
    if (wrong === undefined) {
      return restored(text);
    }
  } catch (error) {
    throw new InvalidArgument(`the request can't be written as JSON: ${(error as Error).message}`, { cause: error });
  }
  throw new InvalidArgument(`${wrong.replace(/^\./, "")}; give what JSON has`);
}

/** Which part of it isn't JSON: its path, and what it is. */
function faultOf(value: unknown): string | undefined {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? undefined : `: is ${value}`;
    case "string":
      return LONE_SURROGATE.test(value) ? ": has half of a surrogate pair" : undefined;
    case "object":
      return value === null ? undefined : faultIn(value);
    case "undefined":
    case "function":
    case "symbol":
      return `: is a value of type ${typeof value}`;
    default:
      return undefined;
  }
}

function faultIn(value: object): string | undefined {
  if ("toJSON" in value && typeof value.toJSON === "function") {
    const json: unknown = value.toJSON("");
    return value instanceof Date && json === null ? ": is an invalid Date" : faultOf(json);
  }
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const fault = faultOf(value[index]);
      if (fault !== undefined) {
        return `[${index}]${fault}`;
      }
    }
    return undefined;
  }
  if (value instanceof Map || value instanceof Set) {
    return ": is a Map or Set";
  }
  for (const name of Object.keys(value)) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    const fault = member === undefined ? undefined : faultOf(member);
    if (fault !== undefined) {
      return `.${name}${fault}`;
    }
  }
  return undefined;
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
