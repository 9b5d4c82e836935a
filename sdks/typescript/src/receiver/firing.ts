/** A callback as the handler sees it. */

import { formatInstant, type Instant, parseInstant } from "../values.js";

/**
 * One attempt to fire a timer, or an occurrence of a schedule.
 *
 * A timer with `method: "GET"` or `"HEAD"` sends no body: without a raw `body` of the timer, namespace and id are empty, the
 * attempt is 0, and both instants are that of the request.
 */
export interface Firing<Payload = unknown> {
  /** The same for all attempts of one firing: use it to recognise repetitions. */
  readonly webhookId: string;
  readonly namespace: string;
  /** The timer's or the schedule's id. */
  readonly timerId: string;
  /** When it was due. */
  readonly executeAt: Instant;
  /** When this attempt began. */
  readonly firedAt: Instant;
  /** Counts from 1. */
  readonly attempt: number;
  /** The timer's payload; null for a raw body, which is in `body`. Its type is not checked. */
  readonly payload: Payload;
  /** The request's body, as it arrived. */
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

/** Reads a verified request. Error: it is no callback of Tocsin. */
export function readFiring(headers: Readonly<Record<string, string>>, body: Uint8Array): Firing {
  const { namespace, timerId, executeAt, firedAt, attempt, payload } = envelopeOf(headers, body);
  return {
    webhookId: headers["webhook-id"] ?? "",
    namespace,
    timerId,
    executeAt: formatInstant(parseInstant(executeAt)),
    firedAt: formatInstant(parseInstant(firedAt)),
    attempt,
    payload,
    body,
    headers,
    traceparent: headers["traceparent"],
  };
}

function envelopeOf(headers: Readonly<Record<string, string>>, body: Uint8Array): Envelope {
  const timerId = headers["tocsin-timer-id"];
  if (timerId !== undefined) {
    return {
      namespace: headers["tocsin-namespace"] ?? "",
      timerId: decodeURIComponent(timerId),
      executeAt: headers["tocsin-execute-at"] ?? "",
      firedAt: headers["tocsin-fired-at"] ?? "",
      attempt: Number(headers["tocsin-attempt"]),
      payload: null,
    };
  }
  if (body.length === 0) {
    const sentAt = formatInstant(BigInt(headers["webhook-timestamp"] ?? "") * 1_000_000n);
    return { namespace: "", timerId: "", executeAt: sentAt, firedAt: sentAt, attempt: 0, payload: null };
  }
  const envelope: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  if (!isEnvelope(envelope)) {
    throw new TypeError("the body is not a callback of Tocsin");
  }
  return envelope;
}

function isEnvelope(value: unknown): value is Envelope {
  const { namespace, timerId, executeAt, firedAt, attempt } = (value ?? {}) as Partial<Envelope>;
  const texts = [namespace, timerId, executeAt, firedAt].every((each) => typeof each === "string");
  return texts && typeof attempt === "number" && "payload" in (value as object);
}
