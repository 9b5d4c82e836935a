import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidArgument } from "../dist/errors.js";
import { Client } from "../dist/index.js";
import { Drain, outbox } from "../dist/outbox/index.js";
import { TIMER } from "./fakes.mjs";

/** A database whose outbox has this row, and a server whose requests are kept as text. */
function drained(request) {
  const sent = [];
  const fetch = async (_, { body }) => {
    sent.push(new TextDecoder().decode(typeof body === "string" ? new TextEncoder().encode(body) : body));
    return new Response(JSON.stringify({ results: [{ timer: TIMER }] }), { status: 200 });
  };
  const row = { id: "0197a3c0-0000-7000-8000-000000000001", request, created_at: 1 };
  const query = async (statement) => ({ rows: /RETURNING/.test(statement) ? [row] : [], count: 1 });
  const database = { dialect: "sqlite", transaction: (work) => work({}, query) };
  return { drain: new Drain(new Client("http://tocsin", { fetch }), database), sent };
}

test("numbers of other languages that JavaScript can't hold are sent as they are", async () => {
  const payload =
    '{"order":9007199254740993,"price":1234567890.123456789,"huge":1e999,"tiny":1e-400,"minus":-18446744073709551616,' +
    '"text":"9007199254740993 \\"1e999\\" \\\\","held":[0,-0.5,1e3,10.0,123456789012345]}';
  const timer = '"namespace":"n","id":"t","callbackUrl":"http://x/","delay":"1h"';
  const { drain, sent } = drained(`{${timer},"payload":${payload}}`);
  assert.equal((await drain.once()).created, 1);
  const [body] = sent;
  for (const exact of [
    '"order":9007199254740993,',
    ":1234567890.123456789,",
    ":1e999,",
    ":1e-400,",
    ":-18446744073709551616,",
  ]) {
    assert.ok(body.includes(exact), `${exact} in ${body}`);
  }
  assert.ok(body.includes('"text":"9007199254740993 \\"1e999\\" \\\\","held":[0,-0.5,1000,10,123456789012345]'), body);
  assert.ok(body.includes('"delay":"0s"'), "what is left of the delay");
});

test("a row that is not JSON is dead, also with such a number", async () => {
  const { drain, sent } = drained('{"payload":09007199254740993}');
  assert.deepEqual(await drain.once(), { created: 0, dead: 1, waiting: 0, unavailable: undefined });
  assert.deepEqual(sent, []);
});

/** What a round makes of two rows of which each request is answered so. */
async function refused(status, body, ends = ["1", "2"]) {
  const asked = [];
  const fetch = async (_, { body: sent }) => {
    asked.push(JSON.parse(sent).timers.length);
    return new Response(body, { status });
  };
  const rows = ends.map((end) => ({
    id: `0197a3c0-0000-7000-8000-00000000000${end}`,
    request: '{"namespace":"n","id":"t","callbackUrl":"http://x/"}',
    created_at: 1,
  }));
  const query = async (statement) => ({ rows: /RETURNING/.test(statement) ? rows : [], rowCount: 2 });
  const database = { dialect: "sqlite", transaction: (work) => work({}, query) };
  const { unavailable, ...made } = await new Drain(new Client("http://tocsin", { fetch, retries: 0 }), database).once();
  return { ...made, unavailable: unavailable?.status, asked };
}

test("rows wait while something else answers at the server's URL", async () => {
  for (const [status, body] of [
    [404, "default backend - 404"],
    [400, "<html>The plain HTTP request was sent to HTTPS port</html>"],
    [405, ""],
    [407, ""],
    [404, '{"timestamp":1,"status":404,"error":"Not Found","path":"/api/v1/timers/batch/create"}'],
    [404, '{"error":"ROUTE_NOT_FOUND","message":"there is no such operation","errors":[]}'],
  ]) {
    const made = await refused(status, body);
    assert.deepEqual(made, { created: 0, dead: 0, waiting: 2, unavailable: status, asked: [2] }, body);
  }
});

test("rows are dead if Tocsin refuses them, or if a proxy takes them not even alone", async () => {
  const dead = { created: 0, dead: 2, waiting: 0, unavailable: undefined, asked: [2, 1, 1] };
  assert.deepEqual(await refused(413, "<html>"), dead);
  assert.deepEqual(await refused(400, '{"error":"INVALID_INPUT","message":"no","errors":[]}'), dead);
});

test("a row that is refused for the moment is no server that is away", async () => {
  const item = { error: "QUOTA_EXCEEDED", message: "", status: 429, errors: [] };
  const made = await refused(200, JSON.stringify({ results: [{ error: item }] }), ["1"]);
  assert.deepEqual(made, { created: 0, dead: 0, waiting: 1, unavailable: undefined, asked: [1] });
});

test("a connection of MySQL without a transaction gets no row", async () => {
  const made = [];
  let serverStatus = 2;
  const connection = {
    async execute(statement) {
      made.push(statement.split(" ")[0]);
      return [{ affectedRows: 1, serverStatus }, undefined];
    },
  };
  const timer = { namespace: "n", id: "t", callbackUrl: "http://x/", delay: "1h" };
  await assert.rejects(outbox(connection).create(timer), InvalidArgument);
  assert.deepEqual(made, ["DO"]);
  // In a transaction, without autocommit, and of a driver that doesn't show it.
  for (serverStatus of [3, 0, undefined]) {
    assert.match(await outbox(connection).create(timer), /^[0-9a-f-]{36}$/);
  }
});
