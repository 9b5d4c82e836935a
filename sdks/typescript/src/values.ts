/** Instants and durations, as requests and answers write them. */

import { InvalidArgument } from "./error-bases.js";

/** An instant as RFC 3339 text in UTC with all microseconds, such as `2027-01-31T12:00:00.000001Z`. `toDate` makes a `Date`. */
export type Instant = string;

/** What is taken for an instant: RFC 3339 text with a time zone, or a `Date`. */
export type InstantLike = string | Date;

/** The parts of a duration. A `Temporal.Duration` of weeks or less is one. */
export interface DurationParts {
  readonly weeks?: number | undefined;
  readonly days?: number | undefined;
  readonly hours?: number | undefined;
  readonly minutes?: number | undefined;
  readonly seconds?: number | undefined;
  readonly milliseconds?: number | undefined;
  readonly microseconds?: number | undefined;
}

/** What is taken for a duration: text such as `500ms`, `1h30m` or `7d`, or its parts. */
export type DurationLike = string | DurationParts;

/** The values of an enum in an answer: those known today, and those of later releases. */
export type Open<Known extends string> = Known | (string & Record<never, never>);

const INSTANT =
  /^(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,12}))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;
const DURATION = /(\d+)(?:\.(\d+))?(us|ms|s|m|h|d)/g;
const UNITS_US = { d: 86_400_000_000n, h: 3_600_000_000n, m: 60_000_000n, s: 1_000_000n, ms: 1_000n, us: 1n } as const;
const PARTS_US = {
  weeks: 604_800_000_000,
  days: 86_400_000_000,
  hours: 3_600_000_000,
  minutes: 60_000_000,
  seconds: 1_000_000,
  milliseconds: 1_000,
  microseconds: 1,
} as const;

/** Microseconds since 1970 of an RFC 3339 text; what is finer rounds up. RangeError: it is none. */
export function parseInstant(text: string): bigint {
  const found = INSTANT.exec(text);
  const [, day, time, fraction = "", sign, hours = "0", minutes = "0"] = found ?? [];
  const ms = found === null ? Number.NaN : Date.parse(`${day}T${time}Z`);
  // Date.parse takes 30 February for a day in March.
  if (Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(`${day}T`)) {
    throw new RangeError(`"${text}" is not an RFC 3339 instant with a time zone, such as 2027-01-31T12:00:00Z`);
  }
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === "-" ? -1 : 1);
  const picoseconds = BigInt(fraction.padEnd(12, "0"));
  return BigInt(ms - offsetMs) * 1_000n + (picoseconds + 999_999n) / 1_000_000n;
}

/** RFC 3339 in UTC with all microseconds. RangeError: it is not between the years 0 and 9999. */
export function formatInstant(us: bigint): Instant {
  const micros = ((us % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const text = new Date(Number((us - micros) / 1_000n)).toISOString();
  if (text.length > 24) {
    throw new RangeError(`${text} is not between the years 0 and 9999`);
  }
  return `${text.slice(0, 19)}${micros ? `.${micros.toString().padStart(6, "0")}` : ""}Z`;
}

/** The canonical text of an instant. RangeError: it is none. */
export function toInstant(instant: InstantLike): Instant {
  return formatInstant(typeof instant === "string" ? parseInstant(instant) : BigInt(timeOf(instant)) * 1_000n);
}

/** A `Date`, which has milliseconds only: what is finer is cut off. RangeError: the text is not an instant. */
export function toDate(instant: Instant): Date {
  const us = parseInstant(instant);
  return new Date(Number((us - (((us % 1_000n) + 1_000n) % 1_000n)) / 1_000n));
}

/** The instant that is so much later, to the microsecond. RangeError: one of them is none. */
export function addDuration(instant: InstantLike, duration: DurationLike): Instant {
  return formatInstant(parseInstant(toInstant(instant)) + BigInt(toMicroseconds(duration)));
}

/** The microseconds of a duration's text; what is finer rounds up. RangeError: it is none. */
export function parseDuration(text: string): number {
  const parts = [...text.matchAll(DURATION)];
  if (parts.length === 0 || parts.map(([part]) => part).join("") !== text) {
    throw new RangeError(`"${text}" is not a duration; write it as 500ms, 30s, 1h30m or 7d`);
  }
  const digits = Math.max(...parts.map(([, , fraction = ""]) => fraction.length));
  const scale = 10n ** BigInt(digits);
  let scaled = 0n;
  for (const [, whole = "0", fraction = "", unit] of parts) {
    scaled += BigInt(whole + fraction.padEnd(digits, "0")) * UNITS_US[unit as keyof typeof UNITS_US];
  }
  return Number((scaled + scale - 1n) / scale);
}

/** The shortest text of so many microseconds. */
export function formatDuration(us: number): string {
  let left = BigInt(us);
  let written = "";
  for (const [unit, size] of Object.entries(UNITS_US)) {
    if (left >= size) {
      written += `${left / size}${unit}`;
      left %= size;
    }
  }
  return written || "0s";
}

/** The microseconds of a duration; what is finer rounds up. RangeError: it is none. */
export function toMicroseconds(duration: DurationLike): number {
  return typeof duration === "string" ? parseDuration(duration) : ofParts(duration);
}

/** What is sent for an instant. InvalidArgument: it is none. */
export function encodeInstant(instant: InstantLike, name: string): string {
  if (typeof instant === "string") {
    return instant; // the server reports what is wrong with it
  }
  if (!(instant instanceof Date)) {
    throw new InvalidArgument(`${name}: is neither a Date nor text; give a Date, or RFC 3339 text`);
  }
  if (Number.isNaN(instant.getTime())) {
    throw new InvalidArgument(`${name}: is an invalid Date; check how it was made`);
  }
  return instant.toISOString();
}

/** What is sent for a duration. InvalidArgument: it is none. */
export function encodeDuration(duration: DurationLike, name: string): string {
  if (typeof duration === "string") {
    return duration;
  }
  try {
    return formatDuration(ofParts(duration));
  } catch (error) {
    throw new InvalidArgument(`${name}: ${(error as Error).message}`, { cause: error });
  }
}

function ofParts(duration: DurationParts): number {
  if (typeof duration !== "object" || duration === null) {
    throw new TypeError('a duration is text such as "30s", or an object such as { seconds: 30 }');
  }
  const given = duration as Readonly<Record<string, unknown>>;
  if (given["years"] || given["months"]) {
    throw new RangeError("years and months differ in length; give weeks or days");
  }
  let us = 0;
  let known = false;
  for (const [part, size] of Object.entries(PARTS_US)) {
    const number = given[part];
    if (number !== undefined) {
      us += Number(number) * size;
      known = true;
    }
  }
  if (!known) {
    throw new TypeError("the duration has none of weeks, days, hours, minutes, seconds, milliseconds, microseconds");
  }
  if (!(us >= 0 && Number.isFinite(us))) {
    throw new RangeError("a duration is zero or longer");
  }
  // Multiplication leaves fractions that were not given: 0.1 s is no more than 100,000 microseconds.
  return Math.ceil(Number(us.toFixed(3)));
}

function timeOf(date: Date): number {
  const ms = date.getTime();
  if (Number.isNaN(ms)) {
    throw new RangeError("the Date is invalid; check how it was made");
  }
  return ms;
}
