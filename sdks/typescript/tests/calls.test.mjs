import assert from "node:assert/strict";
import { test } from "node:test";
import { Calls } from "../dist/calls.js";
import { RetryBudget } from "../dist/core/retries.js";
import { Session } from "../dist/core/session.js";
import {
  DeadlineExceeded,
  InvalidArgument,
  InvalidInput,
  KeyNotFound,
  ServerError,
  TimerNotFound,
  TransportError,
  WaitTimeout,
} from "../dist/errors.js";
import { Client } from "../dist/index.js";
import { Keys } from "../dist/keys.js";
import { Monitors } from "../dist/monitors.js";
import { Namespaces } from "../dist/namespaces.js";
import { rescheduleAt } from "../dist/receiver/index.js";
import { Timers } from "../dist/timers.js";
import { addDuration, encodeDuration, encodeInstant, toDate, toMicroseconds } from "../dist/values.js";
import { answering, FakeClock, NAMESPACE, NEW, refusal, TIMER } from "./fakes.mjs";

const SILENT = {};
const FLOW = { closeOnRetryAfter: false, paused: false, inFlight: 0, waiting: 0, complete: true };
const CUT = Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNRESET" } });
const REFUSED = Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });

function session(answers, options = {}) {
  const clock = new FakeClock();
  const server = answering(...answers);
  const made = new Session("http://tocsin/", { fetch: server.fetch, logger: SILENT, ...options }, clock);
  return { session: made, clock, sent: server.sent };
}

test("a create keeps its key, its instant and its promise over tries", async () => {
  const { session: shared, clock, sent } = session([[503, {}, { "retry-after": "2" }], CUT, [200, TIMER]]);
  assert.equal((await new Timers(shared).create(NEW)).id, "t");
  assert.deepEqual(
    sent.map((each) => each.headers.get("tocsin-first-try")),
    ["1", null, null],
  );
  assert.equal(new Set(sent.map((each) => each.body.idempotencyKey)).size, 1);
  assert.deepEqual(clock.slept, [2_500, 100]);
  assert.deepEqual(
    sent.map((each) => each.body.delay),
    ["10s", "7s500ms", "7s400ms"],
  );
});

test("a key of the caller's goes as a repeated one", async () => {
  const { session: shared, sent } = session([[200, TIMER]]);
  await new Timers(shared).create({ ...NEW, idempotencyKey: "mine" });
  assert.equal(sent[0].headers.get("tocsin-first-try"), null);
  assert.equal(sent[0].body.idempotencyKey, "mine");
});

test("what is not safe is repeated only if it was certainly not executed", async () => {
  const namespace = { name: "n" };
  const cut = session([CUT]);
  await assert.rejects(new Namespaces(cut.session).create(namespace), (error) => error.maybeDone === true);
  assert.equal(cut.sent.length, 1);
  const refused = session([REFUSED, REFUSED, refusal("NOT_READY", 503), [429], [200, NAMESPACE]]);
  await new Namespaces(refused.session).create(namespace);
  assert.equal(refused.sent.length, 5);
});

test("a change of a version has succeeded after a lost answer if what is stored is the next one", async () => {
  const at = { createdAt: "2027-01-31T12:00:00Z", updatedAt: "2027-01-31T12:00:00Z" };
  const flow = { namespace: "n", match: "m", total: { parallelism: 1 }, ...at };
  const calendar = {
    namespace: "n",
    name: "c",
    timeZone: "UTC",
    dates: ["2027-12-25"],
    ranges: [],
    weekdays: [],
    ...at,
  };
  for (const [part, change, stored] of [
    ["flows", { namespace: "n", match: "m", total: { parallelism: 1 } }, flow],
    ["calendars", { namespace: "n", name: "c", dates: ["2027-12-25"] }, calendar],
    ["namespaces", { name: "n", retention: "168h" }, NAMESPACE],
  ]) {
    const put = async (version, ...answers) => {
      const server = answering(...answers, [200, { ...FLOW, ...stored, version }]);
      const client = new Client("http://tocsin", { fetch: server.fetch, logger: SILENT });
      const method = part === "namespaces" ? "update" : "put";
      return { written: await client[part][method]({ ...change, expectedVersion: 0 }), sent: server.sent };
    };
    const conflict = refusal("VERSION_CONFLICT", 409);
    const { written, sent } = await put(1, CUT, conflict);
    assert.equal(written.version, 1, part);
    assert.equal(sent.length, 3);
    await assert.rejects(put(2, CUT, conflict), { code: "VERSION_CONFLICT" }, part);
    await assert.rejects(put(1, conflict), { code: "VERSION_CONFLICT" }, part);
  }
});

test("a put of a monitor is not repeated, whose first answer alone shows the URL", async () => {
  const monitor = { namespace: "n", id: "m", every: "1h" };
  const lost = session([CUT, refusal("INVALID_INPUT", 400)]);
  await assert.rejects(new Monitors(lost.session).put(monitor), { maybeDone: true });
  assert.equal(lost.sent.length, 1);
  const dry = session([CUT, refusal("INVALID_INPUT", 400)]);
  await assert.rejects(new Monitors(dry.session).put({ ...monitor, expectedVersion: 1, dryRun: true }), InvalidInput);
});

test("an unknown certificate is not tried again", async () => {
  const unknown = Object.assign(new TypeError("fetch failed"), { cause: { code: "DEPTH_ZERO_SELF_SIGNED_CERT" } });
  const { session: shared, sent } = session([unknown]);
  await assert.rejects(new Timers(shared).get({ namespace: "n", timerId: "t" }), (error) => error.maybeDone === false);
  assert.equal(sent.length, 1);
});

test("a call is repeated until its time is over, or as often as it may be", async () => {
  const { session: shared, clock, sent } = session([REFUSED]);
  await assert.rejects(new Timers(shared).create(NEW), (error) => error.maybeDone === false);
  assert.ok(clock.slept.every((ms) => ms <= 2_000) && clock.ms - 1_000_000 <= 30_000 && sent.length > 20);
  const few = session([REFUSED]);
  await assert.rejects(new Timers(few.session).create(NEW, { retries: 2 }), TransportError);
  assert.equal(few.sent.length, 3);
});

test("the budget ends retries of what may have been executed", async () => {
  const name = { namespace: "n", timerId: "t" };
  const { session: shared, sent } = session([[502]], { retries: 1 });
  for (let call = 0; call < 105; call++) {
    await assert.rejects(new Timers(shared).get(name));
  }
  assert.equal(sent.length, 105 + 100);
  const free = session([[429]], { retries: 1 });
  for (let call = 0; call < 105; call++) {
    await assert.rejects(new Timers(free.session).get(name));
  }
  assert.equal(free.sent.length, 105 * 2);
});

test("success gives back to the budget", () => {
  const budget = new RetryBudget();
  while (budget.spend());
  for (let success = 0; success < 10; success++) budget.earn(0);
  assert.ok(budget.spend() && !budget.spend());
  budget.earn(2);
  assert.ok(budget.spend() && budget.spend() && !budget.spend());
});

test("each try is reported to the hook and the logger, whatever the hook throws", async () => {
  const lines = [];
  const warnings = [];
  const tries = [];
  const { session: shared } = session([refusal("NOT_READY", 503), CUT, [200, TIMER]], {
    logger: { debug: (line) => lines.push(line), warn: (line) => warnings.push(line) },
    onTry: async (each) => {
      tries.push(each);
      throw new Error("of the hook");
    },
  });
  await new Timers(shared).create(NEW);
  assert.deepEqual(tries, [
    { operation: "createTimer", number: 1, status: 503, code: "NOT_READY", seconds: 0, pauseSeconds: 0.05 },
    {
      operation: "createTimer",
      number: 2,
      error: "POST http://tocsin/api/v1/timers/create: fetch failed: ECONNRESET",
      seconds: 0,
      pauseSeconds: 0.1,
    },
    { operation: "createTimer", number: 3, status: 200, seconds: 0 },
  ]);
  assert.equal(lines[0], "createTimer, try 1: 503 NOT_READY in 0.000 s, next try in 0.050 s");
  assert.equal(lines[2], "createTimer, try 3: 200 in 0.000 s");
  await new Promise(setImmediate);
  assert.match(warnings[0], /onTry failed: Error: of the hook/);
});

test("a try that answers after the call's time is DeadlineExceeded", async () => {
  const clock = new FakeClock();
  const fetch = async () => {
    clock.ms += 31_000;
    throw CUT;
  };
  const timers = new Timers(new Session("http://tocsin", { fetch }, clock));
  await assert.rejects(timers.get({ namespace: "n", timerId: "t" }), DeadlineExceeded);
});

test("a call whose last try was ended by the platform's timer before the clock reached its end is DeadlineExceeded", async () => {
  let requests = 0;
  const fetch = (_, { signal }) => {
    requests++;
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const clock = new FakeClock(); // stands still, as if the timer had fired 5 ms early
  clock.chance = 0; // so that a retry would find time
  const timers = new Timers(new Session("http://tocsin", { fetch, timeoutMs: 5 }, clock));
  await assert.rejects(timers.create(NEW), (error) => error instanceof DeadlineExceeded && error.maybeDone);
  assert.equal(requests, 1);
});

test("an aborted signal ends the request, and a pause", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const hanging = (_, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const name = { namespace: "n", timerId: "t" };
  const waiting = new Client("http://tocsin", { fetch: hanging }).timers.get(name, { signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(waiting, reason);
  const again = new Client("http://tocsin", {
    fetch: async () => new Response("{}", { status: 503, headers: { "retry-after": "9" } }),
  });
  const second = new AbortController();
  const pausing = again.timers.get(name, { signal: second.signal });
  setTimeout(() => second.abort(reason), 1);
  await assert.rejects(pausing, reason);
});

test("a delete whose answer was lost has succeeded if the timer is gone", async () => {
  const name = { namespace: "n", timerId: "t" };
  const gone = session([CUT, refusal("TIMER_NOT_FOUND", 404), refusal("TIMER_NOT_FOUND", 404)]);
  await new Timers(gone.session).delete(name);
  const canceled = session([CUT, refusal("TIMER_NOT_PENDING", 409), [200, { ...TIMER, status: "canceled" }]]);
  await new Timers(canceled.session).delete(name);
  const never = session([refusal("TIMER_NOT_FOUND", 404)]);
  await assert.rejects(new Timers(never.session).delete(name), TimerNotFound);
});

test("wait asks every second where the clock can be moved", async () => {
  const { session: shared, clock } = session([
    [200, TIMER, { "tocsin-now": "2027-01-31T11:00:00Z" }],
    [200, { ...TIMER, status: "completed" }, { "tocsin-now": "2027-01-31T12:00:01Z" }],
  ]);
  await new Timers(shared).wait({ namespace: "n", timerId: "t" });
  assert.deepEqual(clock.slept, [1_000]);
});

test("wait sleeps until the instant, then polls ever more slowly", async () => {
  const clock = new FakeClock();
  clock.ms = Date.parse("2027-01-31T11:59:20Z");
  const polls = [200, 200, 200, 200, 200].map((status) => [status, TIMER]);
  const { fetch } = answering(...polls, [200, { ...TIMER, status: "completed" }]);
  const timers = new Timers(new Session("http://tocsin", { fetch }, clock));
  assert.equal((await timers.wait({ namespace: "n", timerId: "t" })).status, "completed");
  assert.deepEqual(clock.slept, [30_000, 10_000, 100, 200, 400]);
  const late = new Timers(new Session("http://tocsin", { fetch: answering([200, TIMER]).fetch }, clock));
  await assert.rejects(late.wait({ namespace: "n", timerId: "t" }, { timeoutMs: 1_000 }), WaitTimeout);
});

test("wait outlasts a server that is away, and ends in its time if one hangs", async () => {
  const finished = [200, { ...TIMER, status: "completed" }];
  const name = { namespace: "n", timerId: "t" };
  const away = session([...Array(100).fill(REFUSED), finished]);
  const started = away.clock.ms;
  assert.equal((await new Timers(away.session).wait(name, { timeoutMs: 3_600_000 })).status, "completed");
  assert.ok(away.clock.ms - started > 60_000);
  await assert.rejects(new Timers(session([REFUSED]).session).wait(name), TransportError);
  await assert.rejects(
    new Timers(session([refusal("TIMER_NOT_FOUND", 404)]).session).wait(name, { timeoutMs: 5_000 }),
    TimerNotFound,
  );
  const hanging = session([
    () => {
      hanging.clock.ms += 2_000;
      return CUT;
    },
  ]);
  const begun = hanging.clock.ms;
  await assert.rejects(new Timers(hanging.session).wait(name, { timeoutMs: 5_000 }), WaitTimeout);
  assert.ok(hanging.clock.ms - begun <= 9_000, String(hanging.clock.ms - begun));
});

test("owners get first tries, and a failed one is avoided", async () => {
  const nodes = ["http://a", "http://b"].map((apiUrl) => ({ apiUrl, alive: true, leaving: false, skewed: false }));
  const view = [200, { totalShards: 1, nodes, owners: [1] }, { etag: '"1"' }];
  const names = [200, { namespaces: [NAMESPACE] }];
  let failing = false;
  const seen = [];
  const { session: shared, clock } = session(
    [
      ({ url }) => {
        if (url.includes("view=owners")) return view;
        if (url.endsWith("namespaces/list")) return names;
        seen.push(new URL(url).host);
        return failing && url.startsWith("http://b/") ? [503] : [200, TIMER];
      },
    ],
    { routing: "owners" },
  );
  const timers = new Timers(shared);
  await timers.create(NEW);
  await timers.get({ namespace: "n", timerId: "t" });
  failing = true;
  await timers.create(NEW);
  await timers.create(NEW);
  clock.ms += 6_000;
  failing = false;
  await timers.create(NEW);
  assert.deepEqual(seen, ["b", "tocsin", "b", "tocsin", "tocsin", "b"]);
});

test("routing ends with a warning if timers are elsewhere than expected", async () => {
  const warnings = [];
  const nodes = [{ apiUrl: "http://a", alive: true, leaving: false, skewed: false }];
  const answers = ({ url }) => {
    if (url.includes("view=owners")) return [200, { totalShards: 1, nodes, owners: [0] }];
    return url.endsWith("namespaces/list") ? [200, { namespaces: [NAMESPACE] }] : [200, { ...TIMER, shardId: 5 }];
  };
  const { session: shared, sent } = session([answers], {
    routing: "owners",
    logger: { warn: (text) => warnings.push(text) },
  });
  await new Timers(shared).create(NEW);
  await new Timers(shared).create(NEW);
  assert.equal(warnings.length, 1);
  assert.ok(sent.at(-1).url.startsWith("http://tocsin/"));
});

test("an answer that is not Tocsin's is an error that names the mend", async () => {
  for (const answer of [[200, { hello: 1 }], [200, null], () => [200, "<html>"]]) {
    const { session: shared } = session([answer]);
    await assert.rejects(new Timers(shared).get({ namespace: "n", timerId: "t" }), (error) => {
      return error instanceof ServerError && /not Tocsin's.*check that the URL/.test(error.message);
    });
  }
  const { session: shared } = session([[200, "<html>"]]);
  await assert.rejects(new Timers(shared).delete({ namespace: "n", timerId: "t" }), ServerError);
});

test("service calls escape what stands in the path, and get an id", async () => {
  const { session: shared, sent } = session([
    [202, { serviceCallId: "x", status: "Scheduled", submittedAt: "", dueAt: "", correlationId: "c" }],
  ]);
  await new Calls(shared, "a/b").submit({ name: "n", method: "GET", url: "http://x/" });
  assert.equal(new URL(sent[0].url).pathname, "/api/v1/tenants/a%2Fb/service-calls");
  assert.match(sent[0].body.serviceCallId, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]/);
});

test("wrong options and values name themselves", () => {
  const refused = (make, pattern) =>
    assert.throws(make, (error) => error instanceof InvalidArgument && pattern.test(error.message));
  refused(() => new Client("http://x", { timeoutMs: 0 }), /timeoutMs: 0/);
  refused(() => new Client("http://x", { retries: -1 }), /retries: -1/);
  refused(() => new Client("http://x", { routing: "all" }), /routing: "all"/);
  refused(() => encodeInstant(new Date(Number.NaN), "executeAt"), /executeAt: is an invalid Date/);
  refused(() => encodeDuration({ months: 1 }, "delay"), /delay: years and months/);
  refused(() => encodeDuration({ second: 1 }, "delay"), /delay: the duration has none/);
  refused(() => encodeDuration({ seconds: -1 }, "delay"), /delay: a duration is zero/);
});

test("what can't be JSON is refused with its place, and nothing is sent", async () => {
  const circle = {};
  circle.of = [circle];
  const { session: shared, sent } = session([[200, TIMER]]);
  const wrong = [
    [Number.NaN, /^payload: is NaN/],
    [{ a: [1, { b: Number.POSITIVE_INFINITY }] }, /^payload\.a\[1\]\.b: is Infinity/],
    [[undefined], /^payload\[0\]: is a value of type undefined/],
    [{ f() {} }, /^payload\.f: is a value of type function/],
    [{ s: Symbol("s") }, /^payload\.s: is a value of type symbol/],
    [new Date(Number.NaN), /^payload: is an invalid Date/],
    [{ m: new Map([[1, 2]]) }, /^payload\.m: is a Map/],
    [{ half: "\ud83d" }, /^payload\.half: has half of a surrogate pair/],
    [1n, /BigInt/],
    [circle, /circular/],
  ];
  for (const [payload, message] of wrong) {
    await assert.rejects(new Timers(shared).create({ ...NEW, payload }), (error) => {
      return error instanceof InvalidArgument && message.test(error.message);
    });
  }
  assert.throws(() => rescheduleAt(new Date(), { n: Number.NaN }), InvalidArgument);
  assert.equal(sent.length, 0);
  await new Timers(shared).create({
    ...NEW,
    payload: { absent: undefined, at: new Date(0), of: [null, "😀", true, 1] },
  });
  assert.deepEqual(sent[0].body.payload, { at: "1970-01-01T00:00:00.000Z", of: [null, "😀", true, 1] });
});

test("durations and instants keep microseconds", () => {
  assert.equal(encodeDuration({ hours: 1, minutes: 30, milliseconds: 0.001 }, "delay"), "1h30m1us");
  assert.equal(toMicroseconds({ seconds: 0.1 }), 100_000);
  assert.equal(addDuration("2027-01-31T12:00:00.000001Z", "30d"), "2027-03-02T12:00:00.000001Z");
  assert.equal(toDate("1969-12-31T23:59:59.999999Z").getTime(), -1);
});

test("at most 64 requests to a host are under way", async () => {
  let now = 0;
  let most = 0;
  const fetch = async () => {
    most = Math.max(most, ++now);
    await new Promise((resolve) => setTimeout(resolve, 1));
    now--;
    return new Response(JSON.stringify(TIMER));
  };
  const { timers } = new Client("http://tocsin", { fetch });
  await Promise.all(Array.from({ length: 200 }, () => timers.get({ namespace: "n", timerId: "t" })));
  assert.equal(most, 64);
  assert.ok(new TransportError("", { maybeDone: true }) instanceof Error);
});

test("a key whose revocation was answered to nobody is revoked", async () => {
  const lost = session([CUT, refusal("KEY_NOT_FOUND", 404)]);
  await new Keys(lost.session).revoke({ keyId: "k" });
  const unknown = session([refusal("KEY_NOT_FOUND", 404)]);
  await assert.rejects(new Keys(unknown.session).revoke({ keyId: "k" }), KeyNotFound);
});

test("a server that is not reached delays a monitored job for seconds only", async () => {
  const { session: shared, clock } = session([REFUSED]);
  const started = clock.ms;
  const delays = [];
  await new Monitors(shared).run({ namespace: "n", id: "m" }, () => delays.push(clock.ms - started));
  delays.push(clock.ms - started);
  assert.ok(delays[0] > 0 && delays[0] <= 5_000 && delays[1] <= 10_000, String(delays));
});

test("what became of a monitored job that was aborted is reported", async () => {
  const { session: shared, sent } = session([refusal("MONITOR_NOT_FOUND", 404)]);
  const controller = new AbortController();
  const job = () => {
    controller.abort(new Error("half \ud83d"));
    controller.signal.throwIfAborted();
  };
  const { signal } = controller;
  await assert.rejects(new Monitors(shared).run({ namespace: "n", id: "m" }, job, { signal }), /half/);
  assert.deepEqual(
    sent.map((each) => [each.body.event, each.body.body]),
    [
      ["start", undefined],
      ["fail", "Error: half \ufffd"],
    ],
  );
});
