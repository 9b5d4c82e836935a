/** Verifies requests and calls handlers, whatever server received them. */

import { DEFAULT_LOGGER, explained, type Logger } from "../logger.js";
import { type DurationLike, toMicroseconds } from "../values.js";
import { Answer, refused, tooLong } from "./answers.js";
import { Batch, isBatch, readBatch } from "./batch.js";
import { BODY_BYTES_MAX } from "./bodies.js";
import { type FastifyPlugin, fastifyPlugin } from "./fastify.js";
import { type FetchHandler, fetchHandler } from "./fetch.js";
import { type Firing, readFiring } from "./firing.js";
import { type NodeHandler, nodeHandler } from "./node.js";
import { isSigned, keyOf, signaturesIn } from "./signatures.js";

/** Of `webhook-id` and `webhook-signature`: several times as long as the server's. */
const HEADER_CHARS_MAX = 1_024;
const TIMESTAMP = /^[0-9]{1,12}$/;
/** The last second of the year 9999. */
const SECONDS_MAX = 253_402_300_799;

/** What a callback leads to. */
export type Handler<Payload = unknown> = (firing: Firing<Payload>) => Answer | Promise<Answer>;

/** The current secret, and the former one during a rotation: a list, or text with spaces between them. */
export type Secrets = string | readonly string[];

/** The headers of a request, as servers show them. */
export type HeadersLike =
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** How a receiver is made. */
export interface ReceiverOptions {
  /** The namespace's secrets, or a function that returns them. It is called for each request, not when a module is imported. */
  readonly secrets?: Secrets | (() => Secrets | undefined | Promise<Secrets | undefined>) | undefined;
  /** Take requests without a signature: anybody who reaches the receiver can call it. */
  readonly unsigned?: boolean | undefined;
  /** How much the sender's clock may differ; by default `5m`. */
  readonly tolerance?: DurationLike | undefined;
  /** Gets why requests are refused, and the exceptions of handlers; by default the console does. */
  readonly logger?: Logger | undefined;
  /** Milliseconds since 1970; by default `Date.now`. */
  readonly now?: (() => number) | undefined;
}

/** Verifies callbacks with the namespace's secrets. Without secrets every request is refused, unless `unsigned` is true. */
export class Receiver {
  private readonly toleranceMs: number;
  private readonly logger: Logger;

  /** RangeError, TypeError: `tolerance` is no duration. */
  constructor(private readonly options: ReceiverOptions) {
    this.toleranceMs = toMicroseconds(options.tolerance ?? "5m") / 1_000;
    this.logger = options.logger ?? DEFAULT_LOGGER;
  }

  /**
   * The response to a request. An exception of the handler is logged, and answered 500: the server calls again. The
   * callbacks of a batch are handled one after another, and answered together. TypeError: the body is not the raw bytes.
   */
  async handle<Payload>(headers: HeadersLike, body: Uint8Array, handler: Handler<Payload>): Promise<Answer> {
    const verified = await this.verify(headers, body);
    if (verified instanceof Batch) {
      for (const webhookId of verified.unreadable) {
        this.warn(`tocsin: callback ${webhookId} of a batch refused: it is not of the timer that its webhookId names`);
      }
      const answers: Answer[] = [];
      for (const firing of verified.firings) {
        answers.push(await this.answer(firing, handler));
      }
      return verified.response(answers);
    }
    return verified instanceof Answer ? verified : this.answer(verified, handler);
  }

  private async answer<Payload>(firing: Firing, handler: Handler<Payload>): Promise<Answer> {
    try {
      const answer: unknown = await handler(firing as Firing<Payload>);
      if (!(answer instanceof Answer)) {
        throw new TypeError("the handler returned no answer; return done(), rescheduleAt(), retry() or fail()");
      }
      return answer;
    } catch (error) {
      this.error(`tocsin: handler failed for timer ${firing.timerId} (${firing.webhookId}): ${explained(error)}`);
      return refused(500, "the handler failed; the receiver's log has the reason");
    }
  }

  /**
   * The firing, or the firings of a batch, or the response to a request that is refused. TypeError: the body is not the raw
   * bytes.
   */
  async verify(headers: HeadersLike, body: Uint8Array): Promise<Firing | Batch | Answer> {
    if (!(body instanceof Uint8Array)) {
      throw new TypeError("body: is not bytes; give the request's raw body, before a parser has read it");
    }
    if (body.length > BODY_BYTES_MAX) {
      return tooLong();
    }
    const named = lowered(headers);
    const refusal = await this.refusal(named, body);
    if (refusal !== undefined) {
      return refusal;
    }
    const read = isBatch(named) ? readBatch(named, body) : readFiring(named, body);
    if (read === undefined) {
      this.warn(`tocsin: callback ${named["webhook-id"]} refused: neither its body nor its headers name its timer`);
      return refused(503, "neither the body nor the headers name the timer of the webhook-id");
    }
    return read;
  }

  /** For fetch-style servers, such as Next.js, Hono, Workers, Deno and Bun: a function of a Request. */
  fetch<Payload = unknown>(handler: Handler<Payload>): FetchHandler {
    return fetchHandler(this, handler);
  }

  /** For Express and `node:http`: a function of request and response. Mount it where no parser has read the body. */
  express<Payload = unknown>(handler: Handler<Payload>): NodeHandler {
    return nodeHandler(this, handler);
  }

  /** For Fastify: a plugin with a route for the path, where no parser reads the body. */
  fastify<Payload = unknown>(path: string, handler: Handler<Payload>): FastifyPlugin {
    return fastifyPlugin(this, path, handler);
  }

  /** Why the request is not verified. What a mended configuration would accept is 503: after a 401 the timer fails. */
  private async refusal(headers: Readonly<Record<string, string>>, body: Uint8Array): Promise<Answer | undefined> {
    const { "webhook-id": webhookId, "webhook-timestamp": timestamp, "webhook-signature": signature } = headers;
    const unsigned = this.options.unsigned === true;
    if (webhookId === undefined || timestamp === undefined || (signature === undefined && !unsigned)) {
      return refused(401, "the request is not signed");
    }
    const isTimestamp = TIMESTAMP.test(timestamp) && Number(timestamp) <= SECONDS_MAX;
    if (webhookId.length > HEADER_CHARS_MAX || !isTimestamp) {
      return refused(503, "the request's webhook-id or webhook-timestamp is malformed");
    }
    return unsigned ? undefined : this.wrong(webhookId, timestamp, signature ?? "", body);
  }

  private async wrong(
    webhookId: string,
    timestamp: string,
    header: string,
    body: Uint8Array,
  ): Promise<Answer | undefined> {
    const given = header.length > HEADER_CHARS_MAX ? undefined : signaturesIn(header);
    if (given === undefined) {
      this.warn("tocsin: callback refused: it has too many signatures");
      return refused(503, "the request has too many signatures");
    }
    if (Math.abs((this.options.now ?? Date.now)() - Number(timestamp) * 1_000) > this.toleranceMs) {
      this.warn(`tocsin: callback ${webhookId} refused: its timestamp is outside the tolerance`);
      return refused(503, "the request's timestamp is outside the tolerance; check both clocks");
    }
    let keys: readonly CryptoKey[];
    try {
      keys = await this.keys();
    } catch (error) {
      this.error(`tocsin: signing secrets can't be read; callbacks are refused until they can: ${explained(error)}`);
      return refused(503, "the receiver's secrets can't be read; its log has the reason");
    }
    if (keys.length === 0) {
      this.error("tocsin: receiver has no signing secret; give `secrets`, or `unsigned: true`");
      return refused(503, "the receiver has no secret");
    }
    if (!(await isSigned(keys, webhookId, timestamp, body, given))) {
      this.warn(`tocsin: callback ${webhookId} refused: wrong signature`);
      return refused(503, "no signature is of this receiver's secrets");
    }
    return undefined;
  }

  private warn(message: string): void {
    this.logger.warn?.(message);
  }

  private error(message: string): void {
    if (this.logger.error === undefined) {
      this.warn(message);
    } else {
      this.logger.error(message);
    }
  }

  private async keys(): Promise<readonly CryptoKey[]> {
    const { secrets } = this.options;
    const given = (typeof secrets === "function" ? await secrets() : secrets) ?? [];
    return Promise.all((typeof given === "string" ? given.split(/\s+/).filter(Boolean) : given).map(keyOf));
  }
}

function lowered(headers: HeadersLike): Readonly<Record<string, string>> {
  const pairs = isPairs(headers) ? headers : Object.entries(headers);
  const named: Record<string, string> = {};
  for (const [name, value] of pairs) {
    if (value !== undefined) {
      named[name.toLowerCase()] = typeof value === "string" ? value : value.join(", ");
    }
  }
  return named;
}

function isPairs(headers: HeadersLike): headers is Iterable<readonly [string, string]> {
  return Symbol.iterator in headers;
}
