/** Creates the timers of rows whose transactions are committed. */

import type { Client } from "../client.js";
import { CLOCK } from "../core/clock.js";
import { InvalidArgument } from "../error-bases.js";
import { DEFAULT_LOGGER, type Logger } from "../logger.js";
import type { Database, Dialect } from "../receiver/databases.js";
import { type DurationLike, toMicroseconds } from "../values.js";
import {
  type Drained,
  isFinal,
  nowUs,
  OutboxTable,
  Outcome,
  ROWS_MAX,
  refusedTogether,
  requestsOf,
  type Sending,
} from "./table.js";

/** How long one request may take, with its retries: shorter than a drain has its rows. */
const REQUEST_TIMEOUT_MS = 15_000;
/** After a round that failed: doubled up to the longest with each further one. */
const FIRST_PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 30_000;

/** How rows are drained. */
export interface DrainOptions {
  /** By default `tocsin_outbox`. */
  readonly table?: string | undefined;
  /** Of a database object of your own. */
  readonly dialect?: Dialect | undefined;
  /** How many rows a round takes, at most 1,000; by default 250. */
  readonly rowsMax?: number | undefined;
  /** Gets warnings while the server or the database is away, and errors when rows are dead. By default the console. */
  readonly logger?: Logger | undefined;
}

/** When rows are drained, and for how long. */
export interface RunOptions {
  /** How often to look for rows when there were none; by default 500 ms. */
  readonly every?: DurationLike | undefined;
  /** Ends it after its round. */
  readonly signal?: AbortSignal | undefined;
}

/** A drain that runs. */
export interface Running {
  /** Resolves when it has ended, after its round. */
  stop(): Promise<void>;
}

/**
 * Creates the timers whose rows are committed, oldest first, and deletes these rows.
 *
 * Any number of drains may run at once, in one process or several. A timer's rows are sent one after another. What the server
 * refuses for good stays in the table with its `dead_reason`.
 *
 * Each row is sent with its id as idempotency key, so that a row that is sent again, after a crash or a lost answer, fires
 * once. Idempotency keys expire 24 hours after the timer has ended: a row that is sent again later fires twice.
 */
export class Drain {
  private readonly table: OutboxTable;
  private readonly dialect: Dialect;
  private readonly rowsMax: number;
  private readonly logger: Logger;

  /** InvalidArgument: an option is wrong, or the database has no dialect and none is given. */
  constructor(
    private readonly client: Client,
    private readonly database: Database<unknown>,
    options: DrainOptions = {},
  ) {
    this.table = new OutboxTable(options.table);
    const dialect = options.dialect ?? database.dialect;
    if (dialect === undefined || !["postgresql", "mysql", "sqlite"].includes(dialect)) {
      throw new InvalidArgument('dialect: is unknown; give "postgresql", "mysql" or "sqlite"');
    }
    this.dialect = dialect;
    this.rowsMax = options.rowsMax ?? ROWS_MAX;
    if (!(Number.isInteger(this.rowsMax) && this.rowsMax >= 1 && this.rowsMax <= 1_000)) {
      throw new InvalidArgument(`rowsMax: ${this.rowsMax} is not between 1 and 1000, which fit a request`);
    }
    this.logger = options.logger ?? DEFAULT_LOGGER;
  }

  /** Creates the table if it isn't there. */
  async createTable(): Promise<void> {
    await this.database.transaction((_, query) => query(this.table.definition(this.dialect), []));
  }

  /**
   * Creates the timers of at most `rowsMax` rows. What the server or the network does is not thrown, errors of the database
   * are.
   */
  async once(): Promise<Drained> {
    const taken = await this.database.transaction((_, query) => {
      return this.table.take(this.dialect, this.rowsMax, nowUs(), query);
    });
    const outcome = new Outcome();
    if (taken.rows.length > 0) {
      for (const request of requestsOf(taken, nowUs(), outcome)) {
        await this.send(request, outcome);
      }
      await this.database.transaction((_, query) => this.table.settle(this.dialect, taken, outcome, nowUs(), query));
    }
    return outcome.drained();
  }

  /**
   * Drains until the signal is aborted. While there are rows it makes no pauses; while the server or the database is away, they
   * grow up to 30 s.
   */
  async run({ every = "500ms", signal }: RunOptions = {}): Promise<void> {
    const everyMs = toMicroseconds(every) / 1_000;
    let failures = 0;
    while (!signal?.aborted) {
      let pauseMs = 0;
      const { drained, failure } = await this.tried();
      if (failure !== undefined) {
        pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 10), PAUSE_MS_MAX);
        this.logger.warn?.(`outbox not drained, next try in ${pauseMs / 1_000} s: ${String(failure)}`);
      } else if (drained.dead > 0) {
        (this.logger.error ?? this.logger.warn)?.call(
          this.logger,
          `outbox rows dead: ${drained.dead}; see dead_reason in the table`,
        );
      } else if (drained.created + drained.waiting === 0) {
        pauseMs = everyMs;
      }
      failures = failure === undefined ? 0 : failures + 1;
      if (pauseMs > 0) {
        await CLOCK.sleep(pauseMs, signal).catch(() => undefined); // the signal, which the loop sees
      }
    }
  }

  /** Runs it in the background. */
  start(options: Omit<RunOptions, "signal"> = {}): Running {
    const controller = new AbortController();
    const running = this.run({ ...options, signal: controller.signal });
    return {
      stop(): Promise<void> {
        controller.abort();
        return running;
      },
    };
  }

  private async tried(): Promise<{ drained: Drained; failure?: unknown }> {
    try {
      const drained = await this.once();
      return { drained, failure: drained.unavailable };
    } catch (failure) {
      return { drained: { created: 0, dead: 0, waiting: 0 }, failure };
    }
  }

  /** Has the server create the timers of one request. */
  private async send(request: readonly Sending[], outcome: Outcome): Promise<void> {
    if (outcome.unavailable !== undefined) {
      outcome.waiting.push(...request.map(({ row }) => row));
      return;
    }
    const timers = request.map(({ timer }) => timer);
    const results = await this.client.timers.createMany(timers, { timeoutMs: REQUEST_TIMEOUT_MS });
    const refused = refusedTogether(results);
    if (refused !== undefined && isFinal(refused) && request.length > 1) {
      // One of them spoils the request: each gets an answer of its own.
      for (const each of request) {
        await this.send([each], outcome);
      }
      return;
    }
    if (refused !== undefined && !isFinal(refused)) {
      outcome.unavailable = refused;
    }
    for (const [index, { row }] of request.entries()) {
      const result = results[index];
      if (result !== undefined) {
        outcome.add(row, result);
      }
    }
  }
}
