/** For your tests: a server whose clock you move, and signed callbacks without a server. It needs Node.js, Deno or Bun. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { access, constants, mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { Client } from "./client.js";
import { encodeJson } from "./core/bodies.js";
import { timerUuid } from "./core/ids.js";
import { TocsinError } from "./error-bases.js";
import { type Firing, signBody } from "./receiver/index.js";
import { type DurationLike, encodeDuration, type Instant, type InstantLike, toInstant } from "./values.js";

const LINE = /serves on (http:\/\/\S+)/;
const START_MS_MAX = 120_000;
const STOP_MS_MAX = 30_000;

/** The test's server did not start, or did not do what was asked. */
export class ServerFailed extends TocsinError {
  static {
    ServerFailed.prototype.name = "ServerFailed";
  }
}

/** How a test's server is started. */
export interface TestServerOptions {
  /** By default a free one. */
  readonly port?: number | undefined;
  /** Of `tocsin dev`, such as `["--log-level", "debug"]`. */
  readonly flags?: readonly string[] | undefined;
}

/**
 * `tocsin dev` on a free port, with an empty folder of its own. One serves a file of tests; it starts in about a second. The
 * program is the environment's `TOCSIN_BIN`, else `tocsin` on the PATH, else `uvx tocsin`.
 */
export class TestServer {
  private constructor(
    /** Where it answers. */
    readonly url: string,
    private readonly child: ChildProcess,
    private readonly folder: string,
  ) {}

  /** Resolves when it answers. ServerFailed: it ended instead; the message has its log. */
  static async start(options: TestServerOptions = {}): Promise<TestServer> {
    const [program, ...before] = await programOf();
    const folder = await mkdtemp(join(tmpdir(), "tocsin-"));
    const data = ["--data-dir", join(folder, "data"), "--port", String(options.port ?? 0)];
    const log = await open(join(folder, "log"), "w");
    const args = [...before, "dev", ...data, ...(options.flags ?? [])];
    const child = spawn(program, args, { stdio: ["ignore", "pipe", log.fd] });
    child.once("error", () => undefined); // without a process there is no line, which is reported below
    const url = await servesOn(child);
    await log.close();
    if (url !== undefined) {
      return new TestServer(url, child, folder);
    }
    const text = await readFile(join(folder, "log"), "utf8");
    await end(child, folder);
    throw new ServerFailed(`${[program, ...args].join(" ")} did not start: ${text.slice(-4000)}`);
  }

  /** Ends the server and removes its data. */
  async stop(): Promise<void> {
    await end(this.child, this.folder);
  }

  /** A client of this server. */
  client(): Client {
    return new Client(this.url);
  }

  /** What the server's clock shows. */
  async now(): Promise<Instant> {
    return String((await this.clock("get", {}))["now"]);
  }

  /**
   * Moves the clock from one due instant to the next until so much time has passed. Resolves when everything that was due has
   * been answered and stored, to the number of instants. ServerFailed: something came to no end.
   */
  async advance(by: DurationLike): Promise<number> {
    return Number((await this.clock("advance", { by: encodeDuration(by, "by") }))["steps"]);
  }

  private async clock(operation: string, body: object): Promise<Readonly<Record<string, unknown>>> {
    const response = await fetch(`${this.url}/api/v1/dev/clock/${operation}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as Readonly<Record<string, unknown>>;
    if (!response.ok) {
      throw new ServerFailed(String(answer["message"]));
    }
    return answer;
  }
}

/** A callback as the server would send it. */
export interface SignedRequest {
  readonly method: "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What a test's firing has; the rest is made up. */
export interface TestFiring<Payload> {
  readonly timerId?: string | undefined;
  readonly namespace?: string | undefined;
  readonly payload?: Payload | undefined;
  readonly attempt?: number | undefined;
  readonly executeAt?: InstantLike | undefined;
  /** By default that of a new firing of the timer; a receiver refuses one that is of another timer. */
  readonly webhookId?: string | undefined;
}

/** A firing for a handler's test. */
export function firing<Payload = null>(given: TestFiring<Payload> = {}): Firing<Payload | null> {
  const executeAt = toInstant(given.executeAt ?? new Date());
  const place = { namespace: given.namespace ?? "default", timerId: given.timerId ?? "test" };
  return {
    webhookId: given.webhookId ?? `msg_${timerUuid(place).replaceAll("-", "")}_${crypto.randomUUID()}`,
    ...place,
    executeAt,
    firedAt: executeAt,
    attempt: given.attempt ?? 1,
    payload: given.payload ?? null,
    body: new Uint8Array(),
    headers: {},
    traceparent: undefined,
  };
}

/**
 * The request that brings this firing, signed now: `new Request(url, await sign(firing(), secret))`. A firing with a `body` is
 * one of a timer with a raw body.
 */
export async function sign(firing: Firing, secret: string): Promise<SignedRequest> {
  const { namespace, timerId, executeAt, firedAt, attempt, payload, webhookId } = firing;
  const isRaw = firing.body.length > 0;
  const body = isRaw
    ? new TextDecoder().decode(firing.body)
    : encodeJson({ namespace, timerId, executeAt, firedAt, attempt, payload });
  const names = { "tocsin-namespace": namespace, "tocsin-timer-id": encodeURIComponent(timerId) };
  const timestamp = Math.floor(Date.now() / 1_000);
  return {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(isRaw ? names : {}),
      ...firing.headers,
      "webhook-id": webhookId,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": await signBody([secret], webhookId, timestamp, body),
    },
    body,
  };
}

async function servesOn(child: ChildProcess): Promise<string | undefined> {
  if (child.stdout === null) {
    return undefined;
  }
  const tooSlow = setTimeout(() => child.kill("SIGKILL"), START_MS_MAX);
  const lines = createInterface({ input: child.stdout });
  try {
    for await (const line of lines) {
      const found = LINE.exec(line)?.[1];
      if (found !== undefined) {
        return found.replace(/\/$/, "");
      }
    }
    return undefined;
  } finally {
    clearTimeout(tooSlow);
    lines.close();
    child.stdout.resume(); // what it prints later must not fill the pipe
  }
}

async function end(child: ChildProcess, folder: string): Promise<void> {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    const tooSlow = setTimeout(() => child.kill("SIGKILL"), STOP_MS_MAX);
    await exited;
    clearTimeout(tooSlow);
  }
  await rm(folder, { recursive: true, force: true });
}

async function programOf(): Promise<[string, ...string[]]> {
  const named = process.env["TOCSIN_BIN"];
  if (named) {
    return [named];
  }
  const found = await onPath("tocsin");
  if (found !== undefined) {
    return [found];
  }
  const uvx = await onPath("uvx");
  if (uvx !== undefined) {
    return [uvx, "tocsin"];
  }
  throw new ServerFailed("there is no program `tocsin`: install it, or name it in TOCSIN_BIN");
}

async function onPath(program: string): Promise<string | undefined> {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter).filter(Boolean)) {
    const path = join(folder, program);
    const executable = await access(path, constants.X_OK).then(
      () => true,
      () => false, // not there: the next folder may have it
    );
    if (executable) {
      return path;
    }
  }
  return undefined;
}
