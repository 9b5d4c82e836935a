/** A callback as the handler sees it. */

import { type Place, scheduleUuid, timerUuid } from "../core/ids.js";
import { formatInstant, type Instant, toInstant } from "../values.js";

/**
 * One attempt to fire a timer, or an occurrence of a schedule.
 *
 * Everything here but `headers` and `traceparent` is proven by the signature. So with a raw `body` of the timer the attempt is
 * 0, which means unknown, and both instants are that of the request. A timer with `method: "GET"` or `"HEAD"` sends no body:
 * unless it has a raw one, which is empty, namespace and id are empty, too.
 */
export interface Firing<Payload = unknown> {
  /** The same for all attempts of one firing: use it to recognise repetitions. */
  readonly webhookId: string;
  readonly namespace: string;
  /** The timer's or the schedule's id. */
  readonly timerId: string;
  /** When it was due; with a raw body when the request was made. */
  readonly executeAt: Instant;
  /** When this attempt began. */
  readonly firedAt: Instant;
  /** Counts from 1; 0 if it is unknown. */
  readonly attempt: number;
  /** The timer's payload; null for a raw body, which is in `body`. Its type is not checked. */
  readonly payload: Payload;
  /** The request's body, as it arrived; of a batch, this timer's part of it. */
  readonly body: Uint8Array;
  /** The request's headers; their names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** W3C Trace Context of the program that created the timer. */
  readonly traceparent: string | undefined;
}

interface Envelope {
  readonly namespace: string;
  readonly timerId: string;
  readonly executeAt: string;
  readonly firedAt: string;
  readonly attempt: number;
  readonly payload: unknown;
}

type Headers = Readonly<Record<string, string>>;

/**
 * Reads a verified request. The signature covers `webhook-id`, `webhook-timestamp` and the body, so whatever else it is read
 * from has to fit the `webhook-id`. Undefined: it does not, so nothing proves which timer it is of.
 */
export function readFiring(headers: Headers, body: Uint8Array): Firing | undefined {
  const webhookId = headers["webhook-id"] ?? "";
  const read = fromEnvelope(webhookId, body) ?? fromHeaders(webhookId, headers, body);
  return read && { webhookId, ...read, body, headers, traceparent: headers["traceparent"] };
}

function fromEnvelope(webhookId: string, body: Uint8Array): Envelope | undefined {
  if (body.length === 0) {
    return undefined;
  }
  try {
    const envelope: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    if (!isEnvelope(envelope) || !isOf(webhookId, envelope)) {
      return undefined;
    }
    const { namespace, timerId, executeAt, firedAt, attempt, payload } = envelope;
    return { namespace, timerId, executeAt: toInstant(executeAt), firedAt: toInstant(firedAt), attempt, payload };
  } catch {
    return undefined; // no JSON, or no instants: a raw body
  }
}

/** A raw body, whose timer is named beside it; or no body, and no names. */
function fromHeaders(webhookId: string, headers: Headers, body: Uint8Array): Envelope | undefined {
  const { "tocsin-namespace": namespace = "", "tocsin-timer-id": timerId = "" } = headers;
  const place = { namespace, timerId: decoded(timerId) };
  const isNameless = body.length === 0 && namespace === "" && timerId === "";
  if (!isNameless && !isOf(webhookId, place)) {
    return undefined;
  }
  const sentAt = formatInstant(BigInt(headers["webhook-timestamp"] ?? "") * 1_000_000n);
  return { ...place, executeAt: sentAt, firedAt: sentAt, attempt: 0, payload: null };
}

/** Whether the `webhook-id` is that of a firing of this timer or schedule. */
function isOf(webhookId: string, place: Place): boolean {
  const hex = /^msg_([0-9a-f]{32})_./.exec(webhookId)?.[1];
  // Names have no NUL, with which those of another timer or schedule could be written.
  if (hex === undefined || `${place.namespace}${place.timerId}`.includes("\0")) {
    return false;
  }
  return [timerUuid(place), scheduleUuid(place)].some((uuid) => uuid.replaceAll("-", "") === hex);
}

function isEnvelope(value: unknown): value is Envelope {
  const { namespace, timerId, executeAt, firedAt, attempt } = (value ?? {}) as Partial<Envelope>;
  const texts = [namespace, timerId, executeAt, firedAt].every((each) => typeof each === "string");
  return texts && typeof attempt === "number" && "payload" in (value as object);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // no name at all
  }
}
