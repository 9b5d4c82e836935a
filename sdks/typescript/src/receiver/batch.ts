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
  constructor(
    readonly firings: readonly Firing[],
    /** The `webhookId` of each callback that can't be read: it is answered 503, and the others by their handlers. */
    readonly unreadable: readonly string[] = [],
  ) {}

  /** The response with one answer for each of the firings, in their order. */
  response(answers: readonly Answer[]): Answer {
    const results = this.firings.map(({ webhookId }, at) =>
      resultOf(webhookId, answers[at] ?? new Answer(500, {}, "")),
    );
    results.push(...this.unreadable.map((webhookId) => resultOf(webhookId, new Answer(503, {}, ""))));
    return new Answer(200, { "content-type": JSON_TYPE }, `{"items":[${results.join(",")}]}`);
  }
}

/** Whether the request is a batch, by its `webhook-id`, which is signed. */
export function isBatch(headers: Headers): boolean {
  return headers["webhook-id"]?.startsWith(PREFIX) === true;
}

/** Reads a verified request. Undefined: it is no batch. */
export function readBatch(headers: Headers, body: Uint8Array): Batch | undefined {
  let items: readonly string[] | undefined;
  try {
    items = itemsOf(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
  const firings: Firing[] = [];
  const unreadable: string[] = [];
  for (const item of items ?? []) {
    const { webhookId, traceparent } = namesIn(item);
    const firing = webhookId === undefined ? undefined : readItem(headers, webhookId, traceparent, item);
    if (firing !== undefined) {
      firings.push(firing);
    } else if (webhookId !== undefined) {
      unreadable.push(webhookId); // without one there is nothing to answer; the server calls again for it, too
    }
  }
  return items && new Batch(firings, unreadable);
}

/** The JSON texts of the batch's items, as they arrived: written again, numbers could become others. Undefined: it has no list. */
function itemsOf(text: string): readonly string[] | undefined {
  let items: string[] | undefined;
  let [depth, begin, member, within] = [0, 0, "", false];
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') {
      const end = endOfString(text, at);
      member = depth === 1 ? text.slice(at + 1, end) : member;
      at = end;
    } else if (char === "[" || char === "{") {
      depth++;
      if (depth === 2) {
        within = char === "[" && member === "items";
        items = within ? [] : items;
      } else if (depth === 3) {
        begin = at;
      }
    } else if (char === "]" || char === "}") {
      if (depth === 3 && within) {
        items?.push(text.slice(begin, at + 1));
      }
      depth--;
    }
  }
  return depth === 0 ? items : undefined;
}

/** Where the string that begins there has its closing quote. */
function endOfString(text: string, begin: number): number {
  let at = begin + 1;
  while (at < text.length && text[at] !== '"') {
    at += text[at] === "\\" ? 2 : 1;
  }
  return at;
}

/** What an item has beside its envelope. */
function namesIn(item: string): { webhookId: string | undefined; traceparent: string | undefined } {
  try {
    const { webhookId, traceparent } = JSON.parse(item) as { webhookId?: unknown; traceparent?: unknown };
    return { webhookId: textOr(webhookId), traceparent: textOr(traceparent) };
  } catch {
    return { webhookId: undefined, traceparent: undefined };
  }
}

function textOr(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function readItem(
  headers: Headers,
  webhookId: string,
  traceparent: string | undefined,
  item: string,
): Firing | undefined {
  const named: Record<string, string> = { ...headers, "webhook-id": webhookId };
  if (traceparent !== undefined) {
    named["traceparent"] = traceparent;
  }
  const firing = readFiring(named, new TextEncoder().encode(item));
  // One with attempt 0 was read from the headers: the item has no envelope.
  return firing?.attempt === 0 ? undefined : firing;
}

function resultOf(webhookId: string, answer: Answer): string {
  const after = answer.headers["retry-after"];
  const wait = after === undefined ? "" : `,"retryAfter":${after}`;
  const body = answer.headers["content-type"] === JSON_TYPE ? answer.body.trim().slice(1, -1) : "";
  return `{"webhookId":${JSON.stringify(webhookId)},"status":${answer.status}${wait}${body && `,${body}`}}`;
}
