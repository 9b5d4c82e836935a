/** Writes rows to an outbox in transactions of a database's own library, and drains them: node outbox-databases.mjs KIND. */

import assert from "node:assert/strict";
import process from "node:process";
import { Client } from "tocsin-client";
import { InvalidArgument } from "tocsin-client/errors";
import { Drain, mysql, outbox, postgres } from "tocsin-client/outbox";

const { SERVER, DATABASE_URL: uri, NAMESPACE: namespace } = process.env;
const timer = (id, payload) => ({ namespace, id, callbackUrl: "http://127.0.0.1:1/", delay: "1h", payload });

/** For each library its pool, and how a connection of it works in a transaction. */
const KINDS = {
  async pg() {
    const { default: pg } = await import("pg");
    const pool = new pg.Pool({ connectionString: uri });
    const begun = async (work) => {
      const client = await pool.connect();
      try {
        assert.throws(() => outbox(client), InvalidArgument, "no transaction is open");
        await client.query("BEGIN");
        await client.query((await work(client)) ? "COMMIT" : "ROLLBACK");
      } finally {
        client.release();
      }
    };
    return { pool, database: postgres(pool), begun, query: async (sql) => (await pool.query(sql)).rows };
  },
  async mysql2() {
    const { default: mysql2 } = await import("mysql2/promise");
    const pool = mysql2.createPool({ uri });
    const begun = async (work) => {
      const connection = await pool.getConnection();
      try {
        await assert.rejects(outbox(connection).create(timer("alone")), InvalidArgument, "no transaction is open");
        await connection.beginTransaction();
        await ((await work(connection)) ? connection.commit() : connection.rollback());
      } finally {
        connection.release();
      }
    };
    return { pool, database: mysql(pool), begun, query: async (sql) => (await pool.query(sql))[0] };
  },
};

const { pool, database, begun, query } = await KINDS[process.argv[2]]();
const client = new Client(SERVER);
try {
  assert.throws(() => outbox(pool), InvalidArgument);
  const drain = new Drain(client, database);
  await query("DROP TABLE IF EXISTS tocsin_outbox");
  await drain.createTable();
  await drain.createTable();
  await begun(async (connection) => {
    const { create } = outbox(connection);
    await create(timer("größe/17 ☂", 1));
    await create(timer("größe/17 ☂", 2));
    await assert.rejects(create({ ...timer("x"), payload: Number.NaN }), InvalidArgument);
    await assert.rejects(create({ ...timer("x"), idempotencyKey: "mine" }), InvalidArgument);
    return true;
  });
  await begun(async (connection) => {
    await outbox(connection).create(timer("never"));
    return false;
  });
  await begun(async (connection) => {
    await outbox(connection).create({ ...timer("refused"), namespace: "none" });
    return true;
  });
  assert.deepEqual(await drain.once(), { created: 1, dead: 1, waiting: 0, unavailable: undefined });
  const running = new Drain(client, database).start({ every: "10ms" });
  const others = [1, 2, 3].map(() => new Drain(client, database, { rowsMax: 20 }).start({ every: "5ms" }));
  await begun(async (connection) => {
    for (let n = 0; n < 300; n++) {
      await outbox(connection).create(timer(`t${n % 100}`, n));
    }
    return true;
  });
  const left = async () =>
    Number((await query("SELECT count(*) AS n FROM tocsin_outbox WHERE dead_reason IS NULL"))[0].n);
  while ((await left()) > 0);
  await Promise.all([running, ...others].map((each) => each.stop()));
  const found = new Map();
  for await (const each of client.timers.list({ namespace })) {
    found.set(each.id, each.payload);
  }
  assert.equal(found.size, 101);
  assert.equal(found.get("größe/17 ☂"), 2);
  for (let n = 0; n < 100; n++) {
    assert.equal(found.get(`t${n}`), 200 + n);
  }
  console.log("drained");
} finally {
  await pool.end();
}
