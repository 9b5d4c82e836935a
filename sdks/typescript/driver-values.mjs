/** What the driver makes of values, without a server: outcomes of steps, answers of handlers, and the cases of vectors. */

import { errorOf } from "./dist/core/answers.js";
import { baseUrlOf, keyOf } from "./dist/core/connection.js";
import { shardOf, timerUuid } from "./dist/core/ids.js";
import { RetryBudget, retryDelayMs } from "./dist/core/retries.js";
import { lineOf } from "./dist/core/tries.js";
import { ApiError, InvalidArgument, TocsinError, TransportError } from "./dist/errors.js";
import { isFinal, OutboxTable, ROWS_MAX, rowOf, timerOf } from "./dist/outbox/table.js";
import { Answer, done, fail, Receiver, rescheduleAt, retry, signBody } from "./dist/receiver/index.js";
import { formatDuration, parseDuration, parseInstant, toInstant } from "./dist/values.js";

const UTF8 = new TextEncoder();

export class UnknownStep extends Error {}

/** An error as the harness compares it. */
export function failure(error) {
  if (error instanceof UnknownStep) {
    return { classes: ["UnknownStep"], message: error.message };
  }
  if (error?.name === "AbortError") {
    return { classes: ["Canceled"] };
  }
  if (!(error instanceof TocsinError)) {
    return { classes: ["Crash"], message: error?.stack ?? String(error) };
  }
  const classes = [];
  for (let type = error.constructor; type !== Error; type = Object.getPrototypeOf(type)) {
    classes.push(type.prototype.name); // a bundler may rename the class itself
  }
  if (error instanceof TransportError) {
    return { classes, maybeDone: error.maybeDone };
  }
  if (error instanceof InvalidArgument) {
    return { classes, message: error.message };
  }
  if (!(error instanceof ApiError)) {
    return { classes };
  }
  const { status, code, reason: message, fields, correlationId, retryAfterSeconds: retryAfter } = error;
  return { classes, status, code: code || undefined, message, fields, correlationId, retryAfter };
}

/** The answer that a scenario's handler gives. */
export function answerOf(wanted) {
  const [[kind, given]] = Object.entries(wanted);
  const answers = {
    done: () => done(),
    rescheduleAt: () => rescheduleAt(given.at, given.payload),
    retry: () => retry(given.after === undefined ? undefined : `${given.after}s`),
    fail: () => fail(given.reason),
    raise() {
      throw new Error(given);
    },
  };
  return answers[kind]();
}

export function receiverOf({ secrets, unsigned, toleranceSeconds = 300, now }) {
  const clock = now ? () => Number(parseInstant(now)) / 1000 : undefined;
  return new Receiver({ secrets, unsigned, tolerance: `${toleranceSeconds}s`, now: clock, logger: {} });
}

/** What the outbox makes of a statement, a timer, a row or a refusal. */
function outboxed({ statement, dialect, timer, send, now, refused }) {
  const table = new OutboxTable();
  if (statement !== undefined) {
    const [take, remove] = [table.taking(dialect, ROWS_MAX), table.deletion(dialect, 2)];
    const texts = { table: table.definition(dialect), insert: table.insertion, take, delete: remove };
    return { text: texts[statement] };
  }
  if (timer !== undefined) {
    const [namespace, timerId, request] = rowOf(timer);
    return { namespace, timerId, request: JSON.parse(request) };
  }
  if (send !== undefined) {
    return { timer: timerOf({ ...send, request: JSON.stringify(send.request) }, now) };
  }
  return { dead: isFinal(new ApiError("", refused)) };
}

/** A firing as the harness compares it. */
export function shownFiring(firing) {
  return { ...firing, body: undefined, headers: undefined };
}

/** What this SDK makes of the cases in `sdks/vectors`, by the file's name. */
export const VECTORS = {
  placement: ({ namespace, id, numShards, totalShards }) => {
    const place = { namespace, timerId: id };
    return { timerUuid: timerUuid(place), shardId: shardOf(place, numShards, totalShards) };
  },
  signatures: async (given) => {
    const body = UTF8.encode(given.body);
    const answer = await receiverOf(given).handle(given.headers, body, () => done());
    // The bodies of these cases are no callbacks: those that are verified end there.
    return answer.status === 500 || answer.status === 200 ? { valid: true } : { error: answer.body };
  },
  firings: async ({ headers, body }) => {
    const firing = await receiverOf({ unsigned: true }).verify(headers, UTF8.encode(body));
    return firing instanceof Answer ? { error: firing.body } : shownFiring(firing);
  },
  batches: async ({ headers, body, answers }) => {
    const firings = [];
    const response = await receiverOf({ unsigned: true }).handle(headers, UTF8.encode(body), (firing) => {
      firings.push(shownFiring(firing));
      return answerOf(answers[firing.timerId]);
    });
    const failed = firings.length === 0;
    return failed ? { error: response.body } : { status: response.status, body: JSON.parse(response.body), firings };
  },
  signing: async ({ secrets, webhookId, timestamp, body }) => ({
    signature: await signBody(secrets, webhookId, timestamp, body),
  }),
  instants: ({ text }) => ({ text: toInstant(text) }),
  durations: ({ text, microseconds }) =>
    text === undefined ? { text: formatDuration(microseconds) } : { microseconds: parseDuration(text) },
  answers: async ({ answer }) => {
    const headers = { "webhook-id": "x", "webhook-timestamp": "1" };
    const response = await receiverOf({ unsigned: true }).handle(headers, new Uint8Array(), () => answerOf(answer));
    const isJson = response.headers["content-type"]?.includes("json");
    return { status: response.status, headers: response.headers, ...(isJson && { body: JSON.parse(response.body) }) };
  },
  errors: ({ status, headers, body }) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return failure(errorOf({ status, headers: new Headers(headers), text }));
  },
  outbox: outboxed,
  keys: ({ key }) => ({ key: keyOf(key) }),
  urls: ({ url }) => ({ base: baseUrlOf(url) }),
  tries: (given) => ({ line: lineOf(given) }),
  budget: ({ events }) => {
    const budget = new RetryBudget();
    const results = events.map(({ retries, successes, paid }) => {
      const allowed = retries && Array.from({ length: retries }, () => budget.spend()).filter(Boolean).length;
      for (let success = 0; success < (successes ?? 0); success++) budget.earn(paid ?? 0);
      return { allowed, left: Math.round(budget.left * 10) / 10 };
    });
    return { results };
  },
  retries: ({ attempt, retryAfter, leftSeconds, random }) => {
    const delayMs = retryDelayMs(attempt, retryAfter, leftSeconds * 1000, random);
    return delayMs === undefined ? { error: "give up" } : { delaySeconds: delayMs / 1000 };
  },
};
