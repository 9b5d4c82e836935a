/** Databases for deduplication and the outbox: a transaction, and a function that executes a statement in it. */

/** What the databases' SQL differs by. */
export type Dialect = "postgresql" | "mysql" | "sqlite";

/** What statements are given. */
export type SqlValue = string | number;

/** What a statement resulted in: its rows, or how many it wrote. */
export interface QueryResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly rowCount: number;
}

/** Executes a statement whose parameters are written as `$1`, `$2`. */
export type Query = (statement: string, parameters: readonly SqlValue[]) => Promise<QueryResult>;

/**
 * Runs work in a transaction, which commits when it resolves and rolls back when it rejects. `Tx` is what the work uses of
 * your library; `query` executes statements in the same transaction.
 */
export interface Database<Tx> {
  /** Known of those that this package makes. */
  readonly dialect?: Dialect | undefined;
  transaction<Result>(work: (tx: Tx, query: Query) => Promise<Result>): Promise<Result>;
}

/** What is used of a client of pg, node-postgres. */
export interface PgClient {
  query(
    statement: string,
    parameters?: (string | number)[],
  ): Promise<{ rows: Record<string, unknown>[]; rowCount: number | null }>;
  release(error?: Error | boolean): void;
}

/** What is used of a pool of pg. */
export interface PgPool<Client extends PgClient> {
  connect(): Promise<Client>;
}

/** PostgreSQL with a pool of pg, or of what resembles it, such as Neon's and Vercel's. */
export function postgres<Client extends PgClient>(pool: PgPool<Client>): Database<Client> {
  return {
    dialect: "postgresql",
    async transaction(work) {
      const client = await pool.connect();
      let broken = false;
      try {
        await client.query("BEGIN");
        const result = await work(client, async (statement, parameters) => {
          const { rows, rowCount } = await client.query(statement, [...parameters]);
          return { rows, rowCount: rowCount ?? 0 };
        });
        await client.query("COMMIT");
        return result;
      } catch (error) {
        await client.query("ROLLBACK").catch(() => {
          broken = true; // the error that led here is thrown; the connection must not go back to the pool
        });
        throw error;
      } finally {
        client.release(broken);
      }
    },
  };
}

/** What is used of a statement of node:sqlite, better-sqlite3 or bun:sqlite. */
export interface SqliteStatement {
  all(...parameters: SqlValue[]): unknown[];
  run(...parameters: SqlValue[]): { changes: number | bigint };
}

/** What is used of a database of node:sqlite, better-sqlite3 or bun:sqlite. */
export interface SqliteDatabase {
  exec(statement: string): unknown;
  prepare(statement: string): SqliteStatement;
}

/**
 * SQLite with a connection of node:sqlite, better-sqlite3 or bun:sqlite. It has one transaction at a time: give it a
 * connection that nothing else uses.
 */
export function sqlite<Connection extends SqliteDatabase>(connection: Connection): Database<Connection> {
  let last: Promise<unknown> = Promise.resolve();
  return {
    dialect: "sqlite",
    transaction(work) {
      const next = last.then(() => sqliteTransaction(connection, work));
      last = next.catch(() => undefined); // its caller gets the error
      return next;
    },
  };
}

async function sqliteTransaction<Connection extends SqliteDatabase, Result>(
  connection: Connection,
  work: (tx: Connection, query: Query) => Promise<Result>,
): Promise<Result> {
  connection.exec("BEGIN IMMEDIATE");
  try {
    const result = await work(connection, inSqlite(connection));
    connection.exec("COMMIT");
    return result;
  } catch (error) {
    connection.exec("ROLLBACK");
    throw error;
  }
}

/** Executes statements with the connection. */
export function inSqlite(connection: SqliteDatabase): Query {
  return async (statement, parameters) => {
    // SQLite would take $1 for a name.
    const prepared = connection.prepare(statement.replace(/\$(\d)/g, "?$1"));
    return /^\s*SELECT|\sRETURNING\s/i.test(statement)
      ? { rows: prepared.all(...parameters) as Record<string, unknown>[], rowCount: 0 }
      : { rows: [], rowCount: Number(prepared.run(...parameters).changes) };
  };
}

/** What is used of a connection of mysql2/promise. */
export interface MysqlConnection {
  execute(statement: string, parameters: SqlValue[]): Promise<[unknown, unknown]>;
}

/** What is used of a connection of a pool. */
export interface MysqlPoolConnection extends MysqlConnection {
  beginTransaction(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  release(): void;
  destroy(): void;
}

/** What is used of a pool of mysql2/promise. */
export interface MysqlPool<Connection extends MysqlPoolConnection> {
  getConnection(): Promise<Connection>;
}

/** MySQL or MariaDB with a pool of mysql2/promise, for the outbox. */
export function mysql<Connection extends MysqlPoolConnection>(pool: MysqlPool<Connection>): Database<Connection> {
  return {
    dialect: "mysql",
    async transaction(work) {
      const connection = await pool.getConnection();
      let broken = false;
      try {
        await connection.beginTransaction();
        const result = await work(connection, inMysql(connection));
        await connection.commit();
        return result;
      } catch (error) {
        await connection.rollback().catch(() => {
          broken = true; // as with pg
        });
        throw error;
      } finally {
        if (broken) {
          connection.destroy();
        } else {
          connection.release();
        }
      }
    },
  };
}

/** Executes statements with the connection. Their parameters are in order. */
export function inMysql(connection: MysqlConnection): Query {
  return async (statement, parameters) => {
    const [result] = await connection.execute(statement.replace(/\$\d+/g, "?"), [...parameters]);
    return Array.isArray(result)
      ? { rows: result as Record<string, unknown>[], rowCount: 0 }
      : { rows: [], rowCount: (result as { affectedRows: number }).affectedRows };
  };
}
