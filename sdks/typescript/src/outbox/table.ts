/** The table of timers to create: its statements, what a row has, and what becomes of it. Nothing here does I/O. */

import { isOfItem } from "../core/answers.js";
import { BYTES_MAX, ENVELOPE_BYTES, type ItemResult, itemOf } from "../core/batches.js";
import { encodeJson, remaining } from "../core/bodies.js";
import { parseExactly } from "../core/exact.js";
import { uuid7 } from "../core/ids.js";
import { isRepeated } from "../core/retries.js";
import { ApiError, InvalidArgument, TransportError } from "../error-bases.js";
import { encodeCreateTimer } from "../generated/codecs.js";
import type { CreateTimer } from "../generated/models.js";
import type { Dialect, Query } from "../receiver/databases.js";

/** What `timers.create` takes, but for the idempotency key: that is the row's id. */
export type OutboxTimer = Omit<CreateTimer, "idempotencyKey">;

export const TABLE = "tocsin_outbox";
/** How many rows a round takes. */
export const ROWS_MAX = 250;
/** For so long nobody else takes the rows that a drain has taken. A drain that is killed leaves them waiting for it. */
const LEASE_US = 60_000_000;
/** Between the tries of a row that is refused for the moment: half of its age, within these bounds. */
const PAUSE_US_MIN = 1_000_000;
const PAUSE_US_MAX = 60_000_000;
/** Of a reason, which has the server's message. */
const REASON_LENGTH_MAX = 1_000;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$/;
/** Answers that an operator mends: an API key that is unknown, or not allowed this. */
const KEY_REFUSED: ReadonlySet<number> = new Set([401, 403]);
/** Of errors of Tocsin's. Others have words there, such as Not Found. */
const CODE = /^[A-Z][A-Z0-9_]*$/;
const TOO_LARGE = 413;

/** Microseconds since 1970. */
export function nowUs(): number {
  return Date.now() * 1_000;
}

let lastMs = 0;
let counter = 0;

/** A UUID of version 7 that is greater than the one before, so that rows are read as they were written. */
export function rowId(nowMs: number): string {
  counter = nowMs > lastMs ? 0 : counter + 1;
  lastMs = Math.max(nowMs, lastMs);
  if (counter === 0x1000) {
    counter = 0;
    lastMs += 1;
  }
  const id = uuid7(lastMs);
  return `${id.slice(0, 15)}${counter.toString(16).padStart(3, "0")}${id.slice(18)}`;
}

/** A row that a drain has taken. */
export interface Row {
  readonly id: string;
  /** The JSON of `timers/create`. */
  readonly request: string;
  /** In microseconds since 1970. */
  readonly createdAt: number;
}

/** What is sent for a row at that time, with what is left of its delay. InvalidArgument: it has no timer's JSON. */
export function timerOf(row: Row, now: number): CreateTimer {
  let request: unknown;
  try {
    request = parseExactly(row.request);
  } catch (error) {
    throw new InvalidArgument(`request: is not JSON: ${(error as Error).message}`, { cause: error });
  }
  if (typeof request !== "object" || request === null || Array.isArray(request)) {
    throw new InvalidArgument("request: is not a JSON object; write rows with outbox(connection).create");
  }
  const elapsedMs = Math.max(now - row.createdAt, 0) / 1_000;
  return { ...remaining(request as Record<string, unknown>, elapsedMs), idempotencyKey: row.id } as CreateTimer;
}

/** The rows that a drain has taken, until `dueAt`, in microseconds since 1970. */
export interface Taken {
  readonly rows: readonly Row[];
  readonly dueAt: number;
}

/** What became of the rows that a drain has taken. */
export interface Drained {
  /** Their timers are created, and they are deleted. */
  readonly created: number;
  /** The server refuses them for good; they stay in the table, with the reason. */
  readonly dead: number;
  /** They are tried again later. */
  readonly waiting: number;
  /** Why the server could not be asked, or did not answer. */
  readonly unavailable?: ApiError | TransportError | undefined;
}

/**
 * Whether the timer would be refused again. What an operator or a new release of the server mends is not final, nor is what
 * does not concern the timer: another server answers at the URL, a proxy without a backend, or the path is wrong.
 */
export function isFinal(error: ApiError | TransportError | InvalidArgument): boolean {
  if (error instanceof ApiError) {
    if (!CODE.test(error.code) || error.code === "ROUTE_NOT_FOUND") {
      // A proxy takes smaller bodies than Tocsin: fewer rows at a time may pass.
      return error.status === TOO_LARGE;
    }
    // A collection has room when its timer has fired.
    const mended = KEY_REFUSED.has(error.status) || error.code === "COLLECTION_FULL" || isRepeated(error);
    return error.status >= 400 && error.status < 500 && !mended;
  }
  return error instanceof InvalidArgument;
}

/** What the server made of the rows that were taken, as far as it was asked. */
export class Outcome {
  readonly created: string[] = [];
  readonly dead: { readonly id: string; readonly reason: string }[] = [];
  readonly waiting: Row[] = [];
  unavailable: ApiError | TransportError | undefined;

  add(row: Row, result: ItemResult): void {
    if (result.error === undefined) {
      this.created.push(row.id);
    } else if (isFinal(result.error)) {
      this.dead.push({ id: row.id, reason: result.error.message.slice(0, REASON_LENGTH_MAX) });
    } else {
      this.waiting.push(row);
    }
  }

  drained(): Drained {
    const { created, dead, waiting, unavailable } = this;
    return { created: created.length, dead: dead.length, waiting: waiting.length, unavailable };
  }
}

/** A row with what is sent for it. */
export interface Sending {
  readonly row: Row;
  readonly timer: CreateTimer;
}

/** The rows as requests that are small enough. Rows that have no timer are dead. */
export function requestsOf(taken: Taken, now: number, outcome: Outcome): Sending[][] {
  const requests: Sending[][] = [];
  let left = 0;
  for (const row of taken.rows) {
    try {
      const timer = timerOf(row, now);
      const { bytes } = itemOf(timer);
      if (left < bytes) {
        requests.push([]);
        left = BYTES_MAX - ENVELOPE_BYTES;
      }
      requests.at(-1)?.push({ row, timer });
      left -= bytes;
    } catch (error) {
      if (!(error instanceof InvalidArgument)) {
        throw error;
      }
      outcome.add(row, { error });
    }
  }
  return requests;
}

/** The error of the whole request, if it has one. */
export function refusedTogether(results: readonly ItemResult[]): ApiError | TransportError | undefined {
  const first = results[0]?.error;
  const whole = (first instanceof ApiError && !isOfItem(first)) || first instanceof TransportError;
  return whole && results.every(({ error }) => error === first) ? first : undefined;
}

/** The statements. Parameters are written as `?` in what returns text. InvalidArgument: the name is not a table's. */
export class OutboxTable {
  constructor(private readonly name: string = TABLE) {
    if (!NAME.test(name)) {
      throw new InvalidArgument(`table: "${name}" is not a table's name, such as tocsin_outbox or jobs.tocsin_outbox`);
    }
  }

  /** The table. The unique columns are no rule, but the index that finds whether a timer has an earlier row. */
  definition(dialect: Dialect): string {
    const [text, end] =
      dialect === "mysql" ? ["MEDIUMTEXT", " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"] : ["TEXT", ""];
    return (
      `CREATE TABLE IF NOT EXISTS ${this.name} (id VARCHAR(36) NOT NULL PRIMARY KEY, ` +
      "namespace VARCHAR(255) NOT NULL, timer_id VARCHAR(255) NOT NULL, " +
      `request ${text} NOT NULL, created_at BIGINT NOT NULL, due_at BIGINT NOT NULL, dead_reason TEXT, ` +
      `UNIQUE (namespace, timer_id, id))${end}`
    );
  }

  get insertion(): string {
    const columns = "id, namespace, timer_id, request, created_at, due_at";
    return `INSERT INTO ${this.name} (${columns}) VALUES (?, ?, ?, ?, ?, 0)`;
  }

  /** Writes a row; resolves to its id. InvalidArgument: the timer can't be sent. */
  async insert(timer: OutboxTimer, now: number, query: Query): Promise<string> {
    const id = rowId(Math.floor(now / 1_000));
    await query(numbered(this.insertion), [id, ...rowOf(timer), now]);
    return id;
  }

  /** Finds rows that are due, and that no other drain has. Of a timer's rows it is the oldest, so that they are sent one
   * after another, by however many drains. */
  due(dialect: Dialect, rowsMax: number, columns: string): string {
    const locking = dialect === "sqlite" ? "" : " FOR UPDATE SKIP LOCKED";
    return (
      `SELECT ${columns} FROM ${this.name} AS due WHERE due_at <= ? AND dead_reason IS NULL AND NOT EXISTS ` +
      `(SELECT 1 FROM ${this.name} AS older WHERE older.namespace = due.namespace ` +
      "AND older.timer_id = due.timer_id AND older.id < due.id AND older.dead_reason IS NULL) " +
      `ORDER BY id LIMIT ${rowsMax}${locking}`
    );
  }

  /** Takes rows that are due; in MySQL, which needs another statement for it, finds and locks them. The array has PostgreSQL
   * find them once, not for each row of a plan. */
  taking(dialect: Dialect, rowsMax: number): string {
    if (dialect === "mysql") {
      return this.due(dialect, rowsMax, "id, request, created_at");
    }
    const found = this.due(dialect, rowsMax, "id");
    const within = dialect === "postgresql" ? `= ANY (ARRAY(${found}))` : `IN (${found})`;
    return `UPDATE ${this.name} SET due_at = ? WHERE id ${within} RETURNING id, request, created_at`;
  }

  /** Takes the oldest rows that are due. */
  async take(dialect: Dialect, rowsMax: number, now: number, query: Query): Promise<Taken> {
    const dueAt = now + LEASE_US;
    const parameters = dialect === "mysql" ? [now] : [dueAt, now];
    const found = await query(numbered(this.taking(dialect, rowsMax)), parameters);
    if (found.rows.length === 0 && dialect !== "mysql" && found.rowCount > 0) {
      throw new InvalidArgument(
        "database: its query function returns no rows of UPDATE … RETURNING; let it return them",
      );
    }
    const rows = found.rows.map((row) => ({
      id: String(row["id"]),
      request: String(row["request"]),
      createdAt: Number(row["created_at"]),
    }));
    if (dialect === "mysql" && rows.length > 0) {
      const ids = rows.map(({ id }) => id);
      await query(numbered(`${this.update(dialect)} SET due_at = ? WHERE id IN (${marks(ids.length)})`), [
        dueAt,
        ...ids,
      ]);
    }
    return { rows: rows.sort((a, b) => (a.id < b.id ? -1 : 1)), dueAt };
  }

  /** Deletes so many rows. */
  deletion(dialect: Dialect, rows: number): string {
    const of = dialect === "mysql" ? `settled FROM ${this.name} AS settled FORCE INDEX (PRIMARY)` : `FROM ${this.name}`;
    return `DELETE ${of} WHERE id IN (${marks(rows)})`;
  }

  /** MySQL would read small tables as a whole, and lock rows of the program's transactions: the index is named. */
  private update(dialect: Dialect): string {
    return `UPDATE ${this.name}${dialect === "mysql" ? " FORCE INDEX (PRIMARY)" : ""}`;
  }

  /** Deletes what is created, marks what is dead, and leaves the rest to the next one, after a pause if the server answered. */
  async settle(
    dialect: Dialect,
    taken: Taken,
    { created, dead, waiting, unavailable }: Outcome,
    now: number,
    query: Query,
  ): Promise<void> {
    if (created.length > 0) {
      await query(numbered(this.deletion(dialect, created.length)), created);
    }
    for (const { id, reason } of dead) {
      await query(numbered(`UPDATE ${this.name} SET dead_reason = ? WHERE id = ?`), [reason, id]);
    }
    if (waiting.length > 0) {
      const oldest = Math.min(...waiting.map(({ createdAt }) => createdAt));
      const pause = Math.min(Math.max(Math.floor((now - oldest) / 2), PAUSE_US_MIN), PAUSE_US_MAX);
      const ids = waiting.map(({ id }) => id);
      // Another drain has them if the lease was over: it is not to be disturbed.
      const update = `${this.update(dialect)} SET due_at = ? WHERE due_at = ? AND id IN (${marks(ids.length)})`;
      await query(numbered(update), [unavailable === undefined ? now + pause : now, taken.dueAt, ...ids]);
    }
  }
}

/** The namespace, the id, and the request as JSON. InvalidArgument: the timer can't be sent. */
export function rowOf(timer: OutboxTimer): [string, string, string] {
  if ("idempotencyKey" in timer && timer.idempotencyKey !== undefined) {
    throw new InvalidArgument("idempotencyKey: is the id of the row; leave it out");
  }
  itemOf(timer);
  return [timer.namespace, timer.id, encodeJson(encodeCreateTimer(timer))];
}

function marks(count: number): string {
  return Array.from({ length: count }, () => "?").join(", ");
}

/** With parameters such as $1, $2. */
function numbered(statement: string): string {
  let number = 0;
  return statement.replace(/\?/g, () => `$${++number}`);
}
