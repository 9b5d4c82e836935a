/** Sends requests with the platform's fetch. */

import { TransportError } from "../error-bases.js";

/** What requests are sent with. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** One request. `timeoutMs` covers everything from connecting to the last byte. */
export interface Send {
  readonly method: string;
  /** The node's URL; those of all requests to it begin so. */
  readonly base: string;
  readonly path: string;
  readonly headers: HeadersInit;
  readonly body: string | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** What was answered. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

const REQUESTS_PER_HOST = 64;
/** With these the server can't have received the request: codes of Node.js and its fetch, and of Bun. */
// biome-ignore format: a table
const NOT_SENT: ReadonlySet<string> = new Set([
  "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL", "EMFILE",
  "UND_ERR_CONNECT_TIMEOUT", "ConnectionRefused", "FailedToOpenSocket",
]);
const BAD_CERTIFICATE = /^(CERT_|ERR_TLS_CERT|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_)/;
/** Platforms refuse some ports without a code; Deno has no codes. */
const NOT_CONNECTED = /^bad port$|client error \(Connect\)|Requests to port \d+ are blocked/;

/** Sends with fetch, at most 64 requests at a time to each host. */
export class Transport {
  private readonly hosts = new Map<string, Slots>();

  constructor(private readonly fetch: Fetch) {}

  /** The answer. TransportError: there was none; else the reason of the signal, which ends the request at once. */
  async send(step: Send): Promise<Reply> {
    const { signal } = step;
    signal?.throwIfAborted();
    const end = new AbortController();
    const timeout = setTimeout(() => end.abort(TIMED_OUT), step.timeoutMs);
    const cancel = signal && ((): void => end.abort(signal.reason));
    cancel && signal.addEventListener("abort", cancel, { once: true });
    const host = this.hostOf(step.base);
    try {
      if (!host.take()) {
        await host.turn(end.signal);
      }
      try {
        end.signal.throwIfAborted();
        return await this.request(step, end.signal);
      } finally {
        host.release();
      }
    } catch (error) {
      signal?.throwIfAborted();
      throw error instanceof TransportError ? error : failed(step, error, false);
    } finally {
      clearTimeout(timeout);
      cancel && signal.removeEventListener("abort", cancel);
    }
  }

  private async request(step: Send, signal: AbortSignal): Promise<Reply> {
    const { method, headers, body } = step;
    try {
      const init: RequestInit = { method, headers, signal, redirect: "manual", ...contentOf(method, body) };
      const response = await this.fetch(step.base + step.path, init);
      return { status: response.status, headers: response.headers, text: await response.text() };
    } catch (error) {
      throw failed(step, signal.aborted ? signal.reason : error, true);
    }
  }

  private hostOf(base: string): Slots {
    let slots = this.hosts.get(base);
    if (slots === undefined) {
      slots = new Slots();
      this.hosts.set(base, slots);
    }
    return slots;
  }
}

/** The requests to a host that are under way, and those that wait. */
class Slots {
  private free = REQUESTS_PER_HOST;
  private readonly waiting = new Set<() => void>();

  /** Begins a request, if there is a place. */
  take(): boolean {
    if (this.free === 0) {
      return false;
    }
    this.free--;
    return true;
  }

  /** Begins a request as soon as one of the others has ended. */
  turn(signal: AbortSignal): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const take = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        this.waiting.delete(take);
        reject(signal.reason);
      };
      this.waiting.add(take);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  release(): void {
    const [next] = this.waiting;
    if (next === undefined) {
      this.free++;
      return;
    }
    this.waiting.delete(next);
    next();
  }
}

/** Deno's fetch sends a request again if its connection breaks, also one that may have been executed, unless the body can be
 * read only once. Whether something is repeated, and how, is decided here. */
function contentOf(method: string, body: string | undefined): RequestInit {
  if ("Deno" in globalThis && method !== "GET") {
    return { body: new Blob([body ?? ""]).stream(), duplex: "half" } as RequestInit;
  }
  return body === undefined ? {} : { body };
}

const TIMED_OUT = new Error("timed out");

function failed(step: Send, error: unknown, sent: boolean): TransportError {
  const why = error === TIMED_OUT ? `no answer within ${Math.round(step.timeoutMs)} ms` : explained(error);
  return new TransportError(`${step.method} ${step.base}${step.path}: ${why}`, {
    maybeDone: sent && !isUnsent(error),
    cause: error,
  });
}

/** Whether the request's time was over. */
export function isTimeout(error: Error): boolean {
  return error.cause === TIMED_OUT;
}

function isUnsent(error: unknown): boolean {
  return isUntrusted(error) || isCausedBy(error, (code, message) => NOT_SENT.has(code) || NOT_CONNECTED.test(message));
}

/** Whether the server's certificate could not be verified, which the next try would not change. */
export function isUntrusted(error: unknown): boolean {
  return isCausedBy(error, (code) => BAD_CERTIFICATE.test(code));
}

function isCausedBy(error: unknown, isCause: (code: string, message: string) => boolean): boolean {
  for (let each = error; each instanceof Error || isCoded(each); each = (each as Error).cause) {
    if (isCause(isCoded(each) ? each.code : "", each instanceof Error ? each.message : "")) {
      return true;
    }
  }
  return false;
}

function isCoded(error: unknown): error is { readonly code: string } {
  return typeof error === "object" && error !== null && "code" in error && typeof error.code === "string";
}

/** Of fetch's errors, the cause has the reason. */
function explained(error: unknown): string {
  const { message = String(error), cause } = error as { message?: string; cause?: { message?: string; code?: string } };
  const reason = cause?.message || cause?.code;
  return reason ? `${message}: ${reason}` : message;
}
