/** Several callbacks in one request, and their answers in one response. */

import { Answer } from "./answers.js";
import { type Firing, readFiring } from "./firing.js";

const PREFIX = "batch_";
const JSON_TYPE = "application/json";

type Headers = Readonly<Record<string, string>>;

/**
 * A verified request of a namespace or a flow with `callbackBatch`: the firings of several timers, each with its own
 * `webhookId`. What its `body` has is that part of the request.
 */
export class Batch {
  constructor(readonly firings: readonly Firing[]) {}

  /** The response with one answer for each of the firings, in their order. */
  response(answers: readonly Answer[]): Answer {
    const results = this.firings.map((firing, at) => resultOf(firing, answers[at] ?? new Answer(500, {}, "")));
    return new Answer(200, { "content-type": JSON_TYPE }, `{"items":[${results.join(",")}]}`);
  }
}

/** Whether the request is a batch, by its `webhook-id`, which is signed. */
export function isBatch(headers: Headers): boolean {
  return headers["webhook-id"]?.startsWith(PREFIX) === true;
}

/** Reads a verified request. Undefined: it is no batch, or one of its callbacks is not of the timer that its id names. */
export function readBatch(headers: Headers, body: Uint8Array): Batch | undefined {
  let items: unknown;
  try {
    items = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body))?.items;
  } catch {
    return undefined;
  }
  if (!Array.isArray(items)) {
    return undefined;
  }
  const firings: Firing[] = [];
  for (const item of items) {
    const firing = readItem(headers, item);
    if (firing === undefined) {
      return undefined;
    }
    firings.push(firing);
  }
  return new Batch(firings);
}

function readItem(headers: Headers, item: unknown): Firing | undefined {
  const { webhookId, traceparent } = (item ?? {}) as { webhookId?: unknown; traceparent?: unknown };
  if (typeof webhookId !== "string") {
    return undefined;
  }
  const named: Record<string, string> = { ...headers, "webhook-id": webhookId };
  if (typeof traceparent === "string") {
    named["traceparent"] = traceparent;
  }
  const firing = readFiring(named, new TextEncoder().encode(JSON.stringify(item)));
  // One with attempt 0 was read from the headers: the item has no envelope.
  return firing?.attempt === 0 ? undefined : firing;
}

function resultOf(firing: Firing, answer: Answer): string {
  const after = answer.headers["retry-after"];
  const wait = after === undefined ? "" : `,"retryAfter":${after}`;
  const body = answer.headers["content-type"] === JSON_TYPE ? answer.body.trim().slice(1, -1) : "";
  return `{"webhookId":${JSON.stringify(firing.webhookId)},"status":${answer.status}${wait}${body && `,${body}`}}`;
}
