/** Reads answers: JSON, or the error that an answer means. */

import {
  type ApiError,
  type ApiErrorClass,
  Conflict,
  Forbidden,
  InvalidInput,
  NotFound,
  Overloaded,
  ServerError,
  Unauthenticated,
  Unavailable,
} from "../error-bases.js";
import { type Answers, SHAPES, type Shape } from "../generated/codecs.js";
import { CODES } from "../generated/errors.js";
import type { BadField, ItemError } from "../generated/models.js";
import type { Reply } from "./transport.js";

/** For codes that this version doesn't know. */
const KINDS: Readonly<Record<number, ApiErrorClass>> = {
  401: Unauthenticated,
  403: Forbidden,
  404: NotFound,
  408: Unavailable,
  409: Conflict,
  429: Overloaded,
  502: Unavailable,
  503: Unavailable,
  504: Unavailable,
};
const MESSAGE_CHARS_MAX = 200;

/** The answer, with at least the members that it always has. ServerError: it is something else, as from a proxy. */
export function read<Name extends keyof Answers>(name: Name, reply: Reply): Answers[Name] {
  let source: unknown;
  try {
    source = JSON.parse(reply.text);
  } catch {
    throw foreign(reply, `it is not JSON: ${JSON.stringify(startOf(reply))}`);
  }
  const fault = faultOf(name, source);
  if (fault !== undefined) {
    throw foreign(reply, `the ${name}${fault}`);
  }
  return source as Answers[Name];
}

/** Where the value differs from the answer that it should be. */
function faultOf(name: keyof Answers, value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) {
    return " is not an object";
  }
  const { required, nested }: Shape<never> = SHAPES[name];
  for (const member of required) {
    if (!(member in value)) {
      return ` has no ${member}`;
    }
  }
  for (const [member, inner, isList] of nested) {
    const given = (value as Readonly<Record<string, unknown>>)[member];
    const fault = given === undefined || given === null ? undefined : faultIn(inner, given, isList);
    if (fault !== undefined) {
      return `'s ${member}${fault}`;
    }
  }
  return undefined;
}

function faultIn(name: keyof Answers, given: unknown, isList: boolean): string | undefined {
  if (!isList) {
    return faultOf(name, given);
  }
  if (!Array.isArray(given)) {
    return " is not a list";
  }
  for (const each of given) {
    const fault = faultOf(name, each);
    if (fault !== undefined) {
      return fault;
    }
  }
  return undefined;
}

/** Of an operation that is answered by 204. ServerError: the answer is another success. */
export function readNothing(reply: Reply): void {
  if (reply.status !== 204) {
    throw foreign(reply, `its status is not 204: ${JSON.stringify(startOf(reply))}`);
  }
}

/** The error of a success that no Tocsin server answers. */
export function foreign(reply: Reply, why: string): ServerError {
  const message = `the answer is not Tocsin's: ${why}; check that the URL is that of a Tocsin server`;
  return new ServerError(message, { status: reply.status, code: "" });
}

/** The error that an answer other than 2xx means. */
export function errorOf(reply: Reply): ApiError {
  const problem = problemOf(reply);
  return new (classOf(problem.error, reply.status))(problem.message ?? "", {
    status: reply.status,
    code: problem.error,
    fields: problem.errors?.map(({ path, reason }) => ({ path, reason })),
    correlationId: problem.correlationId ?? reply.headers.get("x-correlation-id") ?? undefined,
    retryAfterSeconds: retryAfter(reply.headers),
  });
}

/** The error of one timer of a batch. */
export function errorOfItem(item: ItemError): ApiError {
  const fields = item.errors?.map(({ path, reason }) => ({ path, reason }));
  const error = new (classOf(item.error, item.status))(item.message, { status: item.status, code: item.error, fields });
  OF_ITEMS.add(error);
  return error;
}

/** Whether the error is that of one timer of a batch, whose request was answered. */
export function isOfItem(error: ApiError): boolean {
  return OF_ITEMS.has(error);
}

const OF_ITEMS = new WeakSet<ApiError>();

/** The class of an error: by its code, by its status if this version doesn't know the code. */
function classOf(code: string, status: number): ApiErrorClass {
  const byCode = Object.hasOwn(CODES, code) ? CODES[code] : undefined;
  return byCode ?? KINDS[status] ?? (status >= 400 && status < 500 ? InvalidInput : ServerError);
}

interface Problem {
  readonly error: string;
  readonly message?: string;
  readonly errors?: readonly BadField[] | null;
  readonly correlationId?: string;
}

function problemOf(reply: Reply): Problem {
  try {
    const problem: unknown = JSON.parse(reply.text);
    if (isProblem(problem)) {
      return problem;
    }
  } catch {
    // Not Tocsin's answer: its start is the message.
  }
  return { error: "", message: startOf(reply) || "no explanation" };
}

function isProblem(value: unknown): value is Problem {
  const { error, message = "", errors, correlationId = "" } = (value ?? {}) as Readonly<Record<string, unknown>>;
  const areTexts = [error, message, correlationId].every((each) => typeof each === "string");
  return areTexts && Array.isArray(errors ?? []) && ((errors ?? []) as unknown[]).every(isBadField);
}

function isBadField(value: unknown): value is BadField {
  const { path, reason } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return typeof path === "string" && typeof reason === "string";
}

/** Tocsin sends no dates; a proxy's date counts as absent. */
function retryAfter(headers: Headers): number | undefined {
  const text = headers.get("retry-after") ?? "";
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}

function startOf(reply: Reply): string {
  return reply.text.slice(0, MESSAGE_CHARS_MAX);
}
