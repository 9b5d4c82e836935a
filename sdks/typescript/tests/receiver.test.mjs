import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import express from "express";
import fastify from "fastify";
import { Dedup, done, fail, postgres, Receiver, rescheduleAt, retry, sqlite } from "../dist/receiver/index.js";
import { firing, sign } from "../dist/testing.js";
import { openDatabase } from "./sqlite.mjs";

const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
const quiet = () => ({
  lines: [],
  warn(line) {
    this.lines.push(line);
  },
  error(line) {
    this.lines.push(line);
  },
});
const made = (options = {}) => new Receiver({ secrets: SECRET, logger: quiet(), ...options });

async function served(handler, use) {
  const server = createServer(handler).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  try {
    return await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

test("fetch: a verified request reaches the handler with its payload", async () => {
  const seen = [];
  const hook = made().fetch(async (each) => {
    seen.push(each);
    return rescheduleAt("2027-01-31T12:00:00.5Z", { n: 2 });
  });
  const request = new Request("http://x/", await sign(firing({ timerId: "größe", payload: { n: 1 } }), SECRET));
  const response = await hook(request);
  assert.deepEqual(await response.json(), { nextExecuteAt: "2027-01-31T12:00:00.500000Z", payload: { n: 2 } });
  assert.deepEqual([seen[0].timerId, seen[0].payload], ["größe", { n: 1 }]);
  await assert.rejects(hook(request), /its body was read before/);
});

test("fetch: GET has no body, and long ones are refused", async () => {
  const hook = made({ unsigned: true }).fetch(() => done());
  const headers = { "webhook-id": "a", "webhook-timestamp": "1" };
  assert.equal((await hook(new Request("http://x/", { headers }))).status, 200);
  const body = new Uint8Array(1024 * 1024 + 1);
  assert.equal((await hook(new Request("http://x/", { method: "POST", headers, body }))).status, 413);
});

test("Node.js: long bodies are refused, with and without a content-length", async () => {
  await served(
    made().express(() => done()),
    async (url) => {
      const body = new Uint8Array(1024 * 1024 + 1);
      const chunked = new ReadableStream({
        start(controller) {
          controller.enqueue(body);
          controller.close();
        },
      });
      assert.equal((await fetch(url, { method: "POST", body })).status, 413);
      assert.equal((await fetch(url, { method: "POST", body: chunked, duplex: "half" })).status, 413);
    },
  );
});

test("a body that arrives in many parts is whole", async () => {
  const { method, headers, body } = await sign(firing({ payload: "x".repeat(20_000) }), SECRET);
  const bytes = new TextEncoder().encode(body);
  const parts = new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 7) controller.enqueue(bytes.subarray(at, at + 7));
      controller.close();
    },
  });
  const hook = made().fetch((each) => fail(String(each.payload.length)));
  const response = await hook(new Request("http://x/", { method, headers, body: parts, duplex: "half" }));
  assert.deepEqual(await response.json(), { ok: false, reason: "20000" });
});

test("raw bodies are read with the headers that their webhook-id proves", async () => {
  const seen = [];
  const hook = made().fetch((each) => {
    seen.push(each);
    return done();
  });
  const raw = { ...firing({ timerId: "größe" }), body: new TextEncoder().encode("<xml/>") };
  const signed = await sign(raw, SECRET);
  assert.equal((await hook(new Request("http://x/", signed))).status, 200);
  assert.deepEqual([seen[0].namespace, seen[0].timerId, seen[0].attempt], ["default", "größe", 0]);
  const altered = { ...signed, headers: { ...signed.headers, "tocsin-timer-id": "other" } };
  assert.equal((await hook(new Request("http://x/", altered))).status, 503);
});

test("more signatures than a rotation has are refused", async () => {
  const receiver = made();
  const { headers, body } = await sign(firing(), SECRET);
  const answers = [9, 10].map((others) => {
    const signatures = `${"v1,AAAA ".repeat(others)}${headers["webhook-signature"]}`;
    return receiver.handle({ ...headers, "webhook-signature": signatures }, new TextEncoder().encode(body), () =>
      done(),
    );
  });
  assert.deepEqual(
    (await Promise.all(answers)).map(({ status }) => status),
    [200, 503],
  );
});

test("secrets are resolved with each request; none refuses, a failing function too", async () => {
  const secrets = [undefined, "", "no base64!", SECRET, [SECRET, "whsec_AAAA"], `whsec_AAAA ${SECRET}`];
  const receiver = made({ secrets: () => secrets.shift() });
  const statuses = [];
  while (secrets.length > 0) {
    const { headers, body } = await sign(firing(), SECRET);
    statuses.push((await receiver.handle(headers, new TextEncoder().encode(body), () => done())).status);
  }
  assert.deepEqual(statuses, [503, 503, 503, 200, 200, 200]);
});

test("a handler that throws, or returns no answer, is logged and answered 500", async () => {
  for (const handler of [
    () => {
      throw new Error("a defect");
    },
    () => undefined,
  ]) {
    const logger = quiet();
    const answer = await made({ unsigned: true, logger }).handle(
      { "webhook-id": "a", "webhook-timestamp": "1" },
      new Uint8Array(),
      handler,
    );
    assert.equal(answer.status, 500);
    assert.match(logger.lines[0], /a defect|returned no answer/);
  }
  await assert.rejects(
    made().handle({}, "text", () => done()),
    /raw body/,
  );
});

test("Express: raw bytes work, a parsed body names the mend", async () => {
  const hook = made().express(() => done());
  const app = express();
  app.post("/stream", hook);
  app.post("/raw", express.raw({ type: "*/*" }), hook);
  app.post("/parsed", express.json(), hook);
  app.use((error, _request, response, _next) => response.status(500).end(error.message));
  await served(app, async (url) => {
    for (const path of ["/stream", "/raw"]) {
      const response = await fetch(url + path, await sign(firing(), SECRET));
      assert.deepEqual([response.status, await response.json()], [200, { ok: true }], path);
    }
    const response = await fetch(`${url}/parsed`, await sign(firing(), SECRET));
    assert.match(await response.text(), /before express\.json/);
  });
});

test("Fastify: the plugin reads bytes, the application's parsers stay", async () => {
  const app = fastify();
  app.register(made().fastify("/hook", () => retry("1500ms")));
  app.post("/other", (request) => request.body);
  const { method, headers, body } = await sign(firing(), SECRET);
  const response = await app.inject({ method, url: "/hook", headers, payload: body });
  assert.deepEqual([response.statusCode, response.headers["retry-after"]], [503, "2"]);
  assert.equal((await app.inject({ method: "GET", url: "/hook" })).statusCode, 401);
  const other = await app.inject({
    method,
    url: "/other",
    headers: { "content-type": "application/json" },
    payload: "[1]",
  });
  assert.deepEqual(other.json(), [1]);
  await app.close();
});

test("Dedup does the work once and repeats its answer; retry, fail and errors roll back", async () => {
  const connection = openDatabase(":memory:");
  const dedup = new Dedup(sqlite(connection));
  await dedup.createTable();
  connection.exec("CREATE TABLE work (n INTEGER)");
  const each = firing();
  const work = (answer) => (database) => {
    database.exec("INSERT INTO work VALUES (1)");
    return answer();
  };
  const count = () => connection.prepare("SELECT count(*) AS n FROM work").all()[0].n;
  for (const [answer, status] of [
    [retry(), 503],
    [fail("no such account"), 422],
  ]) {
    const answered = await dedup.once(
      each,
      work(() => answer),
    );
    assert.equal(answered.status, status);
  }
  await assert.rejects(
    dedup.once(
      each,
      work(() => {
        throw new Error("a defect");
      }),
    ),
    /a defect/,
  );
  await assert.rejects(
    dedup.once(
      each,
      work(() => undefined),
    ),
    /no answer/,
  );
  assert.equal(count(), 0);
  const answers = await Promise.all(
    [1, 2, 3].map((n) =>
      dedup.once(
        each,
        work(() => rescheduleAt("2027-01-31T12:00:00Z", n)),
      ),
    ),
  );
  assert.deepEqual(new Set(answers.map(({ body }) => body)).size, 1);
  assert.equal(count(), 1);
  assert.equal(await dedup.forget(), 0);
  connection.exec("UPDATE tocsin_firings SET handled_at = 1");
  assert.equal(await dedup.forget(), 1);
  assert.throws(() => new Dedup(sqlite(connection), { table: "a; b" }), /is not a table's name/);
  connection.close();
});

test("a connection whose transaction can't be ended does not go back to the pool", async () => {
  const released = [];
  const client = {
    async query(statement) {
      if (statement !== "BEGIN") throw new Error(`${statement} failed`);
      return { rows: [], rowCount: 0 };
    },
    release: (broken) => released.push(broken),
  };
  const database = postgres({ connect: async () => client });
  await assert.rejects(
    database.transaction(async (_, query) => query("SELECT 1", [])),
    /SELECT 1 failed/,
  );
  assert.deepEqual(released, [true]);
});

test("a callback that can't be read takes no other of its batch along", async () => {
  const items = [];
  for (const [timerId, payload] of [
    ["a", "1e999"],
    ["b", "{}"],
    ["c", '"]}\\"["'],
  ]) {
    const { headers, body } = await sign(firing({ timerId, payload: "PAYLOAD" }), SECRET);
    const own = body.replace('"PAYLOAD"', payload);
    items.push(
      `{"webhookId":"${headers["webhook-id"]}",${(timerId === "b" ? own.replace("attempt", "x") : own).slice(1)}`,
    );
  }
  const headers = { "webhook-id": `batch_${"0".repeat(32)}`, "webhook-timestamp": "1" };
  const body = new TextEncoder().encode(`{"items":[${items.join(",")}]}`);
  const seen = [];
  const handler = (each) => {
    seen.push(each);
    return done();
  };
  const answer = await made({ unsigned: true }).handle(headers, body, handler);
  assert.deepEqual(
    JSON.parse(answer.body).items.map((each) => each.status),
    [200, 200, 503],
  );
  assert.deepEqual(
    seen.map((each) => each.payload),
    [Number.POSITIVE_INFINITY, ']}"['],
  );
  assert.equal(new TextDecoder().decode(seen[0].body), items[0]);
});

test("a reason is sent as far as it is shown", () => {
  assert.equal(JSON.parse(fail("😀".repeat(200)).body).reason, "😀".repeat(200));
  assert.equal(JSON.parse(fail("😀".repeat(201)).body).reason, `${"😀".repeat(199)}…`);
});
