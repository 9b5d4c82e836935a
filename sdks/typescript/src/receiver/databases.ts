/** Databases for deduplication: a transaction, and a function that executes a statement in it. */

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
    const result = await work(connection, async (statement, parameters) => {
      // SQLite would take $1 for a name.
      const prepared = connection.prepare(statement.replace(/\$(\d)/g, "?$1"));
      return /^\s*SELECT/i.test(statement)
        ? { rows: prepared.all(...parameters) as Record<string, unknown>[], rowCount: 0 }
        : { rows: [], rowCount: Number(prepared.run(...parameters).changes) };
    });
    connection.exec("COMMIT");
    return result;
  } catch (error) {
    connection.exec("ROLLBACK");
    throw error;
  }
}
