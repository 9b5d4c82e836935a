/** Three days of orders in a moment: the service, a Tocsin whose clock is moved, and the PostgreSQL of DATABASE_URL. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import pg from "pg";
import { firing, sign, TestServer } from "tocsin-client/testing";
import { createApp } from "./orders.js";

const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
let tocsin: TestServer;
let server: Server;
let shop: string;

before(async () => {
  await pool.query("DROP TABLE IF EXISTS orders, mails, tocsin_firings");
  tocsin = await TestServer.start();
  await tocsin.client().namespaces.create({ name: "orders", secret: SECRET });
  server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  shop = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.on("request", await createApp({ pool, tocsin: tocsin.client(), secrets: [SECRET], publicUrl: shop }));
});

after(async () => {
  await tocsin.stop();
  server.close();
  await pool.end();
});

async function post(path: string, body?: unknown): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return fetch(shop + path, { method: "POST", headers, body: body === undefined ? null : JSON.stringify(body) });
}

async function status(order: string): Promise<string> {
  return ((await (await fetch(`${shop}/orders/${order}`)).json()) as { status: string }).status;
}

async function mails(order: string): Promise<string[]> {
  return (await pool.query("SELECT subject FROM mails WHERE order_id = $1", [order])).rows.map((row) => row.subject);
}

test("an unpaid order is canceled after a reminder", async () => {
  for (let sent = 1; sent <= 2; sent++) {
    const answer = await post("/orders", { id: "17", amount: 4200 });
    assert.deepEqual(await answer.json(), { id: "17", amount: 4200, status: "open" });
  }
  await tocsin.advance("25h");
  assert.equal(await status("17"), "reminded");
  await tocsin.advance("48h");
  assert.equal(await status("17"), "canceled");
  assert.deepEqual(await mails("17"), ["Please pay your order", "Your order is canceled"]);
  assert.equal((await post("/orders/17/pay")).status, 409);
});

test("a paid order stays paid", async () => {
  await post("/orders", { id: "18", amount: 990 });
  await tocsin.advance("25h");
  assert.equal((await post("/orders/18/pay")).status, 200);
  const timer = await tocsin.client().timers.get({ namespace: "orders", timerId: "payment-18" });
  assert.equal(timer.status, "canceled");
  await tocsin.advance("48h");
  assert.equal(await status("18"), "paid");
  assert.deepEqual(await mails("18"), ["Please pay your order"]);
});

test("a repeated firing reminds once", async () => {
  await post("/orders", { id: "19", amount: 500 });
  const repeated = firing({ namespace: "orders", timerId: "payment-19", payload: { order: "19" } });
  for (let sent = 1; sent <= 2; sent++) {
    const answer = await fetch(`${shop}/hooks/payment`, await sign(repeated, SECRET));
    assert.ok("nextExecuteAt" in ((await answer.json()) as object));
  }
  assert.deepEqual(await mails("19"), ["Please pay your order"]);
});
