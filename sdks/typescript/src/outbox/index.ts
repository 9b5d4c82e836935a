/**
 * Creates timers in your own transaction: they are rows of your database, and become timers after the commit.
 *
 *     import { Drain, outbox, postgres } from "tocsin-client/outbox";
 *
 *     await client.query("BEGIN");
 *     await client.query("INSERT INTO orders …");
 *     await outbox(client).create({ namespace: "orders", id: "order-17", callbackUrl, delay: "24h" });
 *     await client.query("COMMIT");
 *
 *     const running = new Drain(tocsin, postgres(pool)).start();
 */

import { type OpenTransaction, queryIn } from "./connections.js";
import { nowUs, OutboxTable, type OutboxTimer } from "./table.js";

export {
  type Database,
  type Dialect,
  type MysqlConnection,
  type MysqlPool,
  mysql,
  type PgClient,
  type PgPool,
  postgres,
  type Query,
  type QueryResult,
  type SqliteDatabase,
  type SqliteStatement,
  type SqlValue,
  sqlite,
} from "../receiver/databases.js";
export type { OpenTransaction, PgConnection } from "./connections.js";
export { Drain, type DrainOptions, type Running, type RunOptions } from "./drain.js";
export type { Drained, OutboxTimer } from "./table.js";

/** Writes rows in the transaction that a connection has open. */
export interface Outbox {
  /**
   * Writes a timer to create as a row; resolves to the row's id, which is the timer's idempotency key. If the transaction
   * commits, a drain creates the timer; if it rolls back, there was none. The timer is what `timers.create` takes; `delay`
   * counts from this call. InvalidArgument: the timer can't be sent.
   */
  create(timer: OutboxTimer): Promise<string>;
}

/**
 * Writes timers in the transaction that the connection has open, whatever opened it. InvalidArgument: no transaction is open,
 * where the connection knows it, which that of mysql2 learns when a row is written; or `table` is not a table's name.
 */
export function outbox(connection: OpenTransaction, { table }: { readonly table?: string | undefined } = {}): Outbox {
  const query = queryIn(connection);
  const rows = new OutboxTable(table);
  return { create: (timer) => rows.insert(timer, nowUs(), query) };
}
