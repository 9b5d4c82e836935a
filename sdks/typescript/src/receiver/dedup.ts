/** Does the work of each firing once, with SQL. */

import { type DurationLike, toMicroseconds } from "../values.js";
import { Answer, fromText, toText } from "./answers.js";
import type { Database, Query } from "./databases.js";
import type { Firing } from "./firing.js";

const TABLE = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$/;

/** How firings are remembered. */
export interface DedupOptions {
  /** By default `tocsin_firings`. */
  readonly table?: string | undefined;
}

/**
 * Remembers firings and their answers in a table, in the transaction that does the work: both are there, or neither. SQLite
 * and PostgreSQL.
 */
export class Dedup<Tx> {
  private readonly table: string;

  /** TypeError: `table` is not a table's name. */
  constructor(
    private readonly database: Database<Tx>,
    options: DedupOptions = {},
  ) {
    this.table = options.table ?? "tocsin_firings";
    if (!TABLE.test(this.table)) {
      throw new TypeError(
        `table: "${this.table}" is not a table's name, such as tocsin_firings or jobs.tocsin_firings`,
      );
    }
  }

  /** Creates the table if it isn't there. */
  async createTable(): Promise<void> {
    await this.database.transaction((_, query) =>
      query(
        `CREATE TABLE IF NOT EXISTS ${this.table} (webhook_id TEXT PRIMARY KEY, answer TEXT, handled_at BIGINT NOT NULL)`,
        [],
      ),
    );
  }

  /**
   * Removes the firings that were handled before, by default seven days ago; resolves to their number. Keep them for longer
   * than a timer's retries can take, and than the age of a backup of the server that you might restore.
   */
  async forget(olderThan: DurationLike = "7d"): Promise<number> {
    const before = nowSeconds() - Math.floor(toMicroseconds(olderThan) / 1_000_000);
    return this.database.transaction(async (_, query) => {
      return (await query(`DELETE FROM ${this.table} WHERE handled_at < $1`, [before])).rowCount;
    });
  }

  /**
   * Calls `work` with the transaction, and commits what it did together with its answer. A repetition of the firing gets this
   * answer again, and `work` is not called. `retry()` and `fail()`, like an exception, roll back: nothing was done, and a replay
   * calls `work` again. `work` must not commit.
   */
  async once(firing: Firing, work: (tx: Tx) => Answer | Promise<Answer>): Promise<Answer> {
    try {
      return await this.database.transaction(async (tx, query) => {
        const stored = await this.enter(firing.webhookId, query);
        if (stored !== undefined) {
          return stored;
        }
        const answer: unknown = await work(tx);
        if (!(answer instanceof Answer)) {
          throw new TypeError("the work returned no answer; return done(), rescheduleAt(), retry() or fail()");
        }
        if (!answer.isDone) {
          throw new RolledBack(answer);
        }
        const update = `UPDATE ${this.table} SET answer = $1 WHERE webhook_id = $2`;
        await query(update, [toText(answer), firing.webhookId]);
        return answer;
      });
    } catch (error) {
      if (error instanceof RolledBack) {
        return error.answer;
      }
      throw error;
    }
  }

  /** Records the firing, or returns the answer that it got before. Where both come at once, the second waits for the first. */
  private async enter(webhookId: string, query: Query): Promise<Answer | undefined> {
    const insert = `INSERT INTO ${this.table} (webhook_id, handled_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`;
    const { rowCount } = await query(insert, [webhookId, nowSeconds()]);
    if (rowCount === 1) {
      return undefined;
    }
    const { rows } = await query(`SELECT answer FROM ${this.table} WHERE webhook_id = $1`, [webhookId]);
    const answer = rows[0]?.["answer"];
    if (typeof answer !== "string") {
      throw new Error(`firing ${webhookId} has no answer: something else wrote ${this.table}`);
    }
    return fromText(answer);
  }
}

/** Ends a transaction whose work was not done. */
class RolledBack extends Error {
  constructor(readonly answer: Answer) {
    super("the work was not done");
  }
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1_000);
}
