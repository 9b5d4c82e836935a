/** Whether an update took effect. */

import type { ApiError } from "../error-bases.js";
import { parseDuration, parseInstant } from "../values.js";

type Members = Readonly<Record<string, unknown>>;

/** They name the object, whose id has another name in the answer, or state how to write it. */
const NOT_STORED: ReadonlySet<string> = new Set(["namespace", "timerId", "scheduleId", "expectedVersion", "dryRun"]);
/** The answer also has the defaults of what was left out in them. */
const COMPLETED: ReadonlySet<string> = new Set(["retryPolicy", "body"]);

/** Whether an object that the server shows can have the members that were sent by this call, which was refused at last. */
export function isWritten(shown: object, sent: Members, refused: ApiError): boolean {
  if (sent["dryRun"] === true || !hasMembers(shown, sent)) {
    return false;
  }
  // Of a later version, they are another's.
  return refused.code !== "VERSION_CONFLICT" || (shown as Members)["version"] === Number(sent["expectedVersion"]) + 1;
}

/** Whether an object that the server shows has the members of an update. A delay can't be found in it, nor what the server
 * redacts. */
export function hasMembers(shown: object, sent: Members): boolean {
  return Object.entries(sent).every(([name, value]) => {
    const found = (shown as Members)[name];
    if (name === "payload") {
      return isEqual(found, value); // null is a payload, too, and beside a raw body there is none
    }
    if (name === "paused" && found === undefined) {
      // Of a schedule, whose status has it. One that is there stays as it is.
      return value !== true || (shown as Members)["status"] === "paused";
    }
    if (COMPLETED.has(name) && isObject(found) && isObject(value)) {
      return Object.keys(value).every((part) => isSame(found[part], value[part]));
    }
    return NOT_STORED.has(name) || isSame(found, value);
  });
}

/** Instants and durations have several texts, and what was removed is absent or empty. */
function isSame(shown: unknown, sent: unknown): boolean {
  if (sent === null) {
    return (shown ?? null) === null || (isObject(shown) && Object.keys(shown).length === 0);
  }
  if (typeof shown === "string" && typeof sent === "string") {
    return shown === sent || isSameBy(parseInstant, shown, sent) || isSameBy(parseDuration, shown, sent);
  }
  return isEqual(shown, sent);
}

function isSameBy(parse: (text: string) => bigint | number, shown: string, sent: string): boolean {
  try {
    return parse(shown) === parse(sent);
  } catch {
    return false; // one of them is another text
  }
}

function isEqual(one: unknown, other: unknown): boolean {
  if (!isObject(one) || !isObject(other)) {
    return one === other;
  }
  const names = Object.keys(one);
  const alike = Array.isArray(one) === Array.isArray(other) && names.length === Object.keys(other).length;
  return alike && names.every((name) => isEqual(one[name], other[name]));
}

/** Also a list, whose members are named by numbers. */
function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null;
}
