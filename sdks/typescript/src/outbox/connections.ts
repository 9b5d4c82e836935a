/** How `outbox` gets into the transaction that the program has open. */

import { InvalidArgument } from "../error-bases.js";
import type { Query, SqliteDatabase, SqlValue } from "../receiver/databases.js";
import { inMysql, inSqlite, type MysqlConnection } from "../receiver/databases.js";

/** What is used of a client of pg, or of what resembles it. */
export interface PgConnection {
  query(
    statement: string,
    parameters: SqlValue[],
  ): Promise<{ rows: Record<string, unknown>[]; rowCount: number | null }>;
}

/**
 * A connection with an open transaction: a client of pg, a connection of node:sqlite, better-sqlite3, bun:sqlite or
 * mysql2/promise, or a function that executes a statement with `$1`, `$2` in the transaction.
 */
export type OpenTransaction = Query | PgConnection | SqliteDatabase | MysqlConnection;

const NO_TRANSACTION = "no transaction is open; the row and your work need one that both are in";

/** Of the status that MySQL sends with each answer. */
const IN_TRANSACTION = 1;
const AUTOCOMMIT = 2;

/** Executes statements in the open transaction. InvalidArgument: there is none, or it is no connection. */
export function queryIn(connection: OpenTransaction): Query {
  if (typeof connection === "function") {
    return connection;
  }
  if (typeof connection !== "object" || connection === null) {
    throw new InvalidArgument(
      "connection: is none; give a client of pg, a connection of SQLite or mysql2, or a function",
    );
  }
  if ("getConnection" in connection || "totalCount" in connection) {
    throw new InvalidArgument(`connection: is a pool, and ${NO_TRANSACTION}: give its connection`);
  }
  if ("exec" in connection) {
    // The first is that of node:sqlite, the second that of better-sqlite3 and bun:sqlite.
    const state = connection as { isTransaction?: unknown; inTransaction?: unknown };
    if ((state.isTransaction ?? state.inTransaction) === false) {
      throw new InvalidArgument(`connection: ${NO_TRANSACTION}: BEGIN`);
    }
    return inSqlite(connection);
  }
  if ("execute" in connection) {
    return inMysqlTransaction(connection);
  }
  if ("query" in connection) {
    return inPg(connection);
  }
  throw new InvalidArgument("connection: is unknown; give a function (statement, parameters) => { rows, rowCount }");
}

/** The connection does not know whether a transaction is open: the server is asked before each statement. */
function inMysqlTransaction(connection: MysqlConnection): Query {
  const query = inMysql(connection);
  return async (statement, parameters) => {
    const [answer] = await connection.execute("DO 0", []);
    const { serverStatus: status = IN_TRANSACTION } = answer as { serverStatus?: number };
    if ((status & (IN_TRANSACTION | AUTOCOMMIT)) === AUTOCOMMIT) {
      throw new InvalidArgument(`connection: ${NO_TRANSACTION}: await connection.beginTransaction()`);
    }
    return query(statement, parameters);
  };
}

function inPg(connection: PgConnection): Query {
  // I: idle. Older clients of pg don't have it, and are trusted.
  const state = connection as { getTransactionStatus?: () => string | null };
  if (state.getTransactionStatus?.() === "I") {
    throw new InvalidArgument(`connection: ${NO_TRANSACTION}: await client.query("BEGIN")`);
  }
  return async (statement, parameters) => {
    const { rows, rowCount } = await connection.query(statement, [...parameters]);
    return { rows, rowCount: rowCount ?? 0 };
  };
}
