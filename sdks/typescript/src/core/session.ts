/** One call: tries, deadlines, retries, and which node is asked. */

import { ApiError, DeadlineExceeded, InvalidArgument, TransportError } from "../error-bases.js";
import { OPERATIONS, type OperationName } from "../generated/operations.js";
import { DEFAULT_LOGGER, type Logger } from "../logger.js";
import { VERSION } from "../version.js";
import { errorOf } from "./answers.js";
import { abortable, CLOCK, type Clock } from "./clock.js";
import { baseUrlOf, keyOf } from "./connection.js";
import type { Place } from "./ids.js";
import { type Failure, isRepeated, maybeDone, RetryBudget, retryDelayMs } from "./retries.js";
import { Router } from "./routing.js";
import { type Fetch, isTimeout, type Reply, Transport } from "./transport.js";
import { type OnTry, report } from "./tries.js";

/** Longer than the server's own 10 s, so that its 503 arrives, which means more than a timeout. */
const TRY_TIMEOUT_MS = 15_000;
const USER_AGENT = `tocsin-client-typescript/${VERSION}`;
const CALL_TIMEOUT_MS = 30_000;
/** Of a read that only improves later calls. */
const ASIDE_TIMEOUT_MS = 2_000;
/** Timers of the platform count to 2^31 - 1 milliseconds. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** The value of a parameter in a query; undefined stays out. */
export type Parameter = string | readonly string[] | undefined;

/** A request as it is meant, whatever number of tries it takes. */
export interface Call {
  readonly operation: OperationName;
  /** The body of a try, so many milliseconds after the first. */
  readonly body?: (elapsedMs: number) => string;
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, Parameter>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Headers of the first try only. */
  readonly firstHeaders?: Readonly<Record<string, string>>;
  /** Whether it may not be repeated after a try that may have been executed. */
  readonly unsafe?: boolean;
  /** The timer that it writes, if its owner may be asked directly. */
  readonly place?: Place | undefined;
}

/** Limits of one call, in place of the client's. */
export interface CallOptions {
  /** Of the call with all its retries. */
  readonly timeoutMs?: number | undefined;
  /** At most so many; by default those for which there is time. 0 means none. */
  readonly retries?: number | undefined;
  /** Ends the call at once when it is aborted; the call rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The limits that a call has. */
export interface Limits {
  readonly timeoutMs: number;
  readonly retries: number;
  readonly signal: AbortSignal | undefined;
}

/** How a client is made. */
export interface ClientOptions {
  /** The API key; white space around it is dropped. */
  readonly key?: string | undefined;
  /** Of each call with all its retries; by default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** Of each call at most; by default those for which there is time. 0 means none. */
  readonly retries?: number | undefined;
  /** `owners` sends writes to the nodes that store them, if the client can reach the nodes themselves. */
  readonly routing?: "owners" | undefined;
  /** Gets the headers of each request and may add to them, such as `traceparent`. */
  readonly onRequest?: ((headers: Headers) => void) | undefined;
  /** Gets each try of a call after it has ended. What it throws is logged, and does not concern the call. */
  readonly onTry?: OnTry | undefined;
  /** In place of the platform's, as for a proxy or a private certificate authority. */
  readonly fetch?: Fetch | undefined;
  /** `debug` gets a line for each try, `warn` what no caller sees. By default warnings go to the console. */
  readonly logger?: Logger | undefined;
}

/** What became of a call's tries so far: whether one of the failed ones may have been executed. */
export interface Tries {
  maybeDone: boolean;
}

/** What all calls of a client share. Tests replace the clock. */
export class Session {
  readonly url: string;
  readonly budget = new RetryBudget();
  readonly router: Router | undefined;
  private readonly transport: Transport;
  private readonly defaults: Limits;
  private readonly authorization: string | undefined;
  private readonly logger: Logger;

  constructor(
    url: string,
    private readonly options: ClientOptions = {},
    readonly clock: Clock = CLOCK,
  ) {
    this.url = baseUrlOf(url);
    const key = keyOf(options.key);
    this.authorization = key === undefined ? undefined : `Bearer ${key}`;
    if (options.routing !== undefined && options.routing !== "owners") {
      throw new InvalidArgument(`routing: "${String(options.routing)}" is unknown; use "owners", or leave it out`);
    }
    const none = { timeoutMs: CALL_TIMEOUT_MS, retries: Number.POSITIVE_INFINITY, signal: undefined };
    this.defaults = checked(none, options);
    this.logger = options.logger ?? DEFAULT_LOGGER;
    // The global function is read with each request, as instrumentation may replace it later.
    this.transport = new Transport(options.fetch ?? ((target, init) => globalThis.fetch(target, init)));
    this.router = options.routing === "owners" ? new Router(this.url, this.clock, this.logger) : undefined;
  }

  /** Reports what no caller sees. */
  warn(message: string): void {
    this.logger.warn?.(message);
  }

  /** The limits of a call. InvalidArgument: one is none. */
  limits(options: CallOptions | undefined): Limits {
    return options === undefined ? this.defaults : checked(this.defaults, options);
  }

  /** Repeats the call until it is answered 2xx; throws the last try's ApiError or TransportError otherwise. */
  async perform(call: Call, limits: Limits = this.defaults, tries: Tries = { maybeDone: false }): Promise<Reply> {
    const started = this.clock.monotonicMs();
    const deadline = started + limits.timeoutMs;
    let base = call.place === undefined ? this.url : await this.ownerOf(call.place, limits);
    let paid = 0;
    for (let retry = 0; ; retry++) {
      const began = this.clock.monotonicMs();
      const outcome = await this.attempt(call, base, retry, started, deadline, limits.signal);
      const now = this.clock.monotonicMs();
      if (!(outcome instanceof Error)) {
        this.budget.earn(paid);
        this.report(call, retry, outcome, now - began, undefined);
        return outcome;
      }
      tries.maybeDone ||= maybeDone(outcome);
      const leftMs = isLast(outcome, deadline - began) ? 0 : deadline - now;
      const pauseMs = this.pauseMs(call, outcome, retry, limits, leftMs);
      paid += pauseMs !== undefined && maybeDone(outcome) ? 1 : 0;
      this.report(call, retry, outcome, now - began, pauseMs);
      if (outcome instanceof TransportError && leftMs <= 0) {
        const message = `no answer within the call's ${limits.timeoutMs} ms: ${outcome.message}`;
        throw new DeadlineExceeded(message, { maybeDone: tries.maybeDone, cause: outcome });
      }
      if (pauseMs === undefined) {
        throw outcome;
      }
      await this.clock.sleep(pauseMs, limits.signal);
      base = this.url;
    }
  }

  /** One short try of a read whose failure changes no call's result. */
  private async readAside(call: Call): Promise<Reply | Failure> {
    const started = this.clock.monotonicMs();
    try {
      const reply = await this.send(call, this.url, 0, started, started + ASIDE_TIMEOUT_MS, undefined);
      return reply.status >= 400 ? errorOf(reply) : reply;
    } catch (error) {
      return failureOf(error);
    }
  }

  /** The URL to which the first try of a write goes. */
  async ownerOf(place: Place, limits: Limits): Promise<string> {
    const url = this.router?.baseFor(place, (call) => this.readAside(call));
    return url === undefined ? this.url : abortable(url, limits.signal);
  }

  private async attempt(
    call: Call,
    base: string,
    retry: number,
    started: number,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<Reply | Failure> {
    let outcome: Reply | TransportError;
    try {
      outcome = await this.send(call, base, retry, started, deadline, signal);
    } catch (error) {
      if (!(error instanceof TransportError)) {
        throw error; // the signal's reason
      }
      outcome = error;
    }
    if (call.place !== undefined) {
      this.router?.observe(base, outcome);
    }
    return outcome instanceof Error || isSuccess(outcome) ? outcome : errorOf(outcome);
  }

  private async send(
    call: Call,
    base: string,
    retry: number,
    started: number,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<Reply> {
    const { method, path } = OPERATIONS[call.operation];
    const headers = this.headersOf(call, retry);
    const now = this.clock.monotonicMs();
    return this.transport.send({
      method,
      base,
      path: (call.path ? filled(path, call.path) : path) + (call.query ? queryOf(call.query) : ""),
      headers,
      body: call.body?.(retry === 0 ? 0 : now - started),
      timeoutMs: Math.max(Math.min(TRY_TIMEOUT_MS, deadline - now), 1),
      signal,
    });
  }

  private headersOf(call: Call, retry: number): HeadersInit {
    const headers: Record<string, string> = { accept: "application/json", "user-agent": USER_AGENT };
    Object.assign(headers, call.headers, retry === 0 ? call.firstHeaders : undefined);
    if (this.authorization !== undefined) {
      headers["authorization"] = this.authorization;
    }
    if (call.body !== undefined) {
      headers["content-type"] = "application/json";
    }
    const { onRequest } = this.options;
    if (onRequest === undefined) {
      return headers; // fetch makes Headers of it in any case
    }
    const shown = new Headers(headers);
    onRequest(shown);
    return shown;
  }

  /** Before the next try, which is paid for; undefined: there is none. */
  private pauseMs(call: Call, failure: Failure, retry: number, limits: Limits, leftMs: number): number | undefined {
    if (retry >= limits.retries || !isRepeated(failure) || (maybeDone(failure) && call.unsafe)) {
      return undefined;
    }
    const retryAfter = failure instanceof ApiError ? failure.retryAfterSeconds : undefined;
    const pauseMs = retryDelayMs(retry, retryAfter, leftMs, this.clock.random());
    return pauseMs === undefined || !maybeDone(failure) || this.budget.spend() ? pauseMs : undefined;
  }

  private report(call: Call, retry: number, outcome: Reply | Failure, ms: number, pauseMs: number | undefined): void {
    const { onTry } = this.options;
    if (onTry === undefined && this.logger.debug === undefined) {
      return;
    }
    const attempt = {
      operation: call.operation,
      number: retry + 1,
      ...(outcome instanceof TransportError ? { error: outcome.message } : { status: outcome.status }),
      ...(outcome instanceof ApiError && outcome.code !== "" ? { code: outcome.code } : {}),
      seconds: ms / 1_000,
      ...(pauseMs === undefined ? {} : { pauseSeconds: pauseMs / 1_000 }),
    };
    report(attempt, onTry, this.logger);
  }
}

function checked(defaults: Limits, given: CallOptions): Limits {
  const { timeoutMs = defaults.timeoutMs, retries = defaults.retries, signal = defaults.signal } = given;
  if (!(timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX)) {
    throw new InvalidArgument(`timeoutMs: ${timeoutMs} is not between 1 and ${TIMEOUT_MS_MAX}; give milliseconds`);
  }
  if (!(retries >= 0 && (Number.isInteger(retries) || retries === Number.POSITIVE_INFINITY))) {
    throw new InvalidArgument(`retries: ${retries} is not a number of retries; 0 means none`);
  }
  return { timeoutMs, retries, signal };
}

/** Whether the try took all that was left of the call's time: a platform's timer may end up to some milliseconds early. */
function isLast(outcome: Failure, leftMs: number): boolean {
  return isTimeout(outcome) && leftMs <= TRY_TIMEOUT_MS;
}

function isSuccess(reply: Reply): boolean {
  return reply.status >= 200 && reply.status < 300;
}

function failureOf(error: unknown): Failure {
  if (error instanceof TransportError || error instanceof ApiError) {
    return error;
  }
  throw error;
}

function filled(path: string, values: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
}

function queryOf(parameters: Readonly<Record<string, Parameter>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const each of typeof value === "string" ? [value] : (value ?? [])) {
      query.append(name, each);
    }
  }
  return query.size === 0 ? "" : `?${query}`;
}
