import assert from "node:assert/strict";
import { test } from "node:test";
import { BatchQueue } from "../dist/core/batch-queue.js";
import { itemOf } from "../dist/core/batches.js";
import { Session } from "../dist/core/session.js";
import { BatcherClosed, BatcherFull, InvalidArgument, InvalidInput } from "../dist/errors.js";
import { Timers } from "../dist/timers.js";
import { answering, NEW, refusal, TIMER } from "./fakes.mjs";

const created = ({ body }) => [200, { results: body.timers.map(({ id }) => ({ timer: { ...TIMER, id } })) }];

function timers(...answers) {
  const server = answering(...answers);
  return { timers: new Timers(new Session("http://tocsin", { fetch: server.fetch })), sent: server.sent };
}

function wanted(count) {
  return Array.from({ length: count }, (_, n) => ({ ...NEW, id: `t${n}` }));
}

test("createMany sends chunks of a thousand, from any iterable", async () => {
  const { timers: part, sent } = timers(created);
  async function* each() {
    yield* wanted(2_001);
  }
  const results = await part.createMany(each());
  assert.deepEqual(
    sent.map(({ body }) => body.timers.length),
    [1_000, 1_000, 1],
  );
  assert.equal(results[2_000].timer.id, "t2000");
  assert.equal(new Set(sent.flatMap(({ body }) => body.timers.map((timer) => timer.idempotencyKey))).size, 2_001);
});

test("timers that are refused for the moment go again without the others", async () => {
  const item = { error: "OVERLOADED", message: "", status: 429, errors: [] };
  const wrong = { ...item, error: "INVALID_INPUT", status: 400 };
  const { timers: part, sent } = timers(
    [200, { results: [{ timer: TIMER }, { error: item }, { error: wrong }] }],
    created,
  );
  const [first, second, third] = await part.createMany(wanted(3));
  assert.ok(first.timer && second.timer && third.error instanceof InvalidInput);
  assert.deepEqual(
    sent[1].body.timers.map(({ id }) => id),
    ["t1"],
  );
  assert.deepEqual(
    sent.map(({ headers }) => headers.get("tocsin-first-try")),
    ["1", null],
  );
});

test("a timer that can't be written is its own error, and the others are sent", async () => {
  const { timers: part, sent } = timers(created);
  const each = wanted(4);
  each[0].payload = Number.NaN;
  each[2] = undefined;
  const results = await part.createMany(each);
  assert.ok(results[0].error instanceof InvalidArgument && results[2].error instanceof InvalidArgument);
  assert.deepEqual(
    [results[1].timer.id, results[3].timer.id, sent[0].body.timers.length, results.length],
    ["t1", "t3", 2, 4],
  );
  const batcher = part.batcher();
  await assert.rejects(batcher.add(each[0]), InvalidArgument);
  await batcher.close();
});

test("a failed request is the result of all its timers", async () => {
  const { timers: part } = timers(refusal("INTERNAL", 500));
  const results = await part.createMany(wanted(2));
  assert.deepEqual(
    results.map(({ error }) => error.code),
    ["INTERNAL", "INTERNAL"],
  );
});

test("the batcher sends what was added at once together, and a name once at a time", async () => {
  const { timers: part, sent } = timers(created);
  const batcher = part.batcher();
  const added = [...wanted(700), { ...NEW, id: "t0" }].map((timer) => batcher.add(timer));
  await batcher.close();
  assert.equal((await Promise.all(added)).length, 701);
  assert.equal(sent.flatMap(({ body }) => body.timers).length, 701);
  for (const { body } of sent) {
    assert.ok(body.timers.length <= 500);
    assert.equal(new Set(body.timers.map(({ id }) => id)).size, body.timers.length);
  }
  await assert.rejects(batcher.add(NEW), BatcherClosed);
});

test("a full batcher waits for room, or refuses", async () => {
  const requests = [];
  const held = (request) => new Promise((resolve) => requests.push(() => resolve(created(request))));
  const { timers: part } = timers(held);
  const patient = part.batcher();
  const added = wanted(11_000).map((timer) => patient.add(timer));
  const refusing = part.batcher({ block: false });
  const outcomes = Promise.allSettled(wanted(11_001).map((timer) => refusing.add(timer)));
  const answer = setInterval(() => {
    for (const each of requests.splice(0)) each();
  }, 0);
  await Promise.all(added);
  const refused = (await outcomes).filter(({ status }) => status === "rejected");
  assert.ok(
    refused.length > 0 && refused.length <= 1_001 && refused.every(({ reason }) => reason instanceof BatcherFull),
  );
  clearInterval(answer);
  await Promise.all([patient.close(), refusing.close()]);
});

test("an error of one timer rejects that one", async () => {
  const error = { error: "INVALID_INPUT", message: "no", status: 400, errors: [{ path: "delay", reason: "bad" }] };
  const { timers: part } = timers([200, { results: [{ timer: TIMER }, { error }] }]);
  const batcher = part.batcher();
  const [first, second] = await Promise.allSettled(wanted(2).map((timer) => batcher.add(timer)));
  assert.equal(first.status, "fulfilled");
  assert.deepEqual(second.reason.fields, [{ path: "delay", reason: "bad" }]);
});

test("a timer waits behind its predecessor, also if its owner has changed", () => {
  const queue = new BatchQueue();
  queue.closing = true;
  const add = (owner, ...ids) => {
    for (const id of ids) {
      queue.add(itemOf({ ...NEW, id }), id, owner, 0);
    }
  };
  const taken = () => queue.take(0)?.entries.map(({ waiter }) => waiter);
  add("slow", ...wanted(1_000).map(({ id }) => id));
  const slow = [queue.take(0), queue.take(0)];
  add("slow", "a", "b");
  add("other", "a", "c");
  assert.deepEqual(taken(), ["c"]);
  queue.settled("slow", slow[0].entries);
  const first = queue.take(0);
  assert.deepEqual(
    first.entries.map(({ waiter }) => waiter),
    ["a", "b"],
  );
  assert.equal(first.owner, "slow");
  queue.settled("slow", first.entries);
  assert.deepEqual(taken(), ["a"]);
});
