/**
 * Runs the scenarios' steps with this SDK: `sdks/harness.py` sends them, and checks what this program reports. It uses only
 * what all platforms have; `run-driver.mjs` starts it, on Node.js and in the sandbox of edge runtimes.
 */

import { Client } from "./dist/index.js";
import { Drain, outbox } from "./dist/outbox/index.js";
import { Dedup } from "./dist/receiver/index.js";
import { answerOf, failure, receiverOf, shownFiring, UnknownStep, VECTORS } from "./driver-values.mjs";

const CAN = ["receiver", "dedup", "outbox", "batcher", "routing", "schedules", "calls", "cancel", "keys", "audit"];

/** The clients of the present scenario, by what it wants of them, and their tries. */
let present = { scenario: undefined };

function presentOf(scenario) {
  if (present.scenario !== scenario) {
    present = { scenario, byOptions: new Map(), tries: [], lines: [] };
  }
  return present;
}

function clientOf({ scenario, client }) {
  const { byOptions, tries, lines } = presentOf(scenario);
  const { url, timeout, onTry: hook, ...options } = client;
  const name = JSON.stringify(client);
  if (!byOptions.has(name)) {
    const timeoutMs = timeout === undefined ? undefined : timeout * 1000;
    const logger = { debug: (line) => lines.push(line) };
    const onTry = (each) => {
      tries.push(each);
      if (hook === "raise") throw new Error("the hook fails");
    };
    byOptions.set(name, new Client(url, { ...options, timeoutMs, logger, onTry }));
  }
  return byOptions.get(name);
}

/** What was recorded since this was asked last. */
function recorded({ scenario }) {
  const { tries, lines } = presentOf(scenario);
  return { tries: tries.splice(0), lines: lines.splice(0) };
}

/** The timer, with a payload that JSON does not have if the step wants one. */
function timerOf(timer) {
  return timer.payload?.$unencodable ? { ...timer, payload: Number.NaN } : timer;
}

/** Runs one step against a server. */
async function call(client, step, signal) {
  const [family, verb] = step.do.split(".");
  const { tenantId, timeoutSeconds, pages, serviceCallId, tag, ...given } = step.with ?? {};
  const part = family === "calls" ? client.calls(tenantId) : client[family];
  const options = timeoutSeconds === undefined ? { signal } : { signal, timeoutMs: timeoutSeconds * 1000 };
  if (verb === "createMany") {
    return (await part.createMany(given.timers.map(timerOf), options)).map(shownResult);
  }
  if (family === "timers" && verb === "replay") {
    return (await part.replay(given, options)).map(shownResult);
  }
  if (verb === "createEach") {
    return createEach(part, given.timers, given.concurrency);
  }
  if (step.do === "monitors.run") {
    return monitored(part, given);
  }
  if (verb === "batcher") {
    return batched(part.batcher(), given.items.map(timerOf));
  }
  if (typeof part?.[verb] !== "function") {
    throw new UnknownStep(step.do);
  }
  if (family === "calls") {
    return calls(part, verb, { serviceCallId, tag, ...given }, options);
  }
  const all = verb === "list" && (family === "namespaces" || family === "keys");
  if (family === "jobs" || family === "destinations" || (family === "failures" && verb !== "members")) {
    return part[verb](given, options);
  }
  const result = await (all ? part.list(options) : part[verb](timerOf(given), options));
  return !all && ["list", "history", "members"].includes(verb) ? listed(result, pages) : result;
}

/** What a monitored job did. */
async function monitored(part, { namespace, id, fail }) {
  const job = () => (fail === undefined ? Promise.resolve("done") : Promise.reject(new Error(fail)));
  return part.run({ namespace, id }, job).then(
    (returned) => ({ returned }),
    (error) => ({ raised: error.message }),
  );
}

/** So many at a time. */
async function createEach(part, wanted, concurrency) {
  const results = [];
  const next = wanted.entries();
  const worker = async () => {
    for (const [index, timer] of next) {
      const created = part.create(timerOf(timer));
      results[index] = await created.then((made) => ({ timer: made })).catch((error) => ({ error: failure(error) }));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return results;
}

async function calls(part, verb, { serviceCallId, tag, ...given }, options) {
  if (verb === "submit") {
    const { requestSpec, ...rest } = given;
    return part.submit({ ...rest, ...requestSpec, serviceCallId }, options);
  }
  if (verb === "list") {
    return listed(part.list({ ...given, tag }, options));
  }
  return part[verb](serviceCallId, ...(tag === undefined ? [options] : [tag, options]));
}

async function batched(batcher, items) {
  const added = Promise.allSettled(items.map((item) => batcher.add(item)));
  await batcher.close();
  return (await added).map(({ value, reason }) => shownResult({ timer: value, error: reason }));
}

function shownResult({ timer, error }) {
  return error === undefined ? { timer } : { error: failure(error) };
}

async function listed(result, byPage) {
  const found = [];
  for await (const each of byPage ? result.pages() : result) {
    found.push(each);
  }
  return byPage ? { pages: found } : { items: found };
}

/** Runs a request through a receiver. */
async function receive(given, database) {
  const seen = [];
  let handled = false;
  const work = (firing) => {
    handled = true;
    return answerOf(given.answers?.[firing.timerId] ?? given.answer);
  };
  const handler = async (firing) => {
    seen.push(firing);
    if (given.dedup === undefined) {
      return work(firing);
    }
    const dedup = new Dedup(database(given.dedup));
    await dedup.createTable();
    return dedup.once(firing, () => work(firing));
  };
  const { headers, body } = given.request;
  const receiver = receiverOf(given);
  const answer = await receiver.handle(
    headers,
    Uint8Array.from(atob(body), (char) => char.charCodeAt(0)),
    handler,
  );
  const firings = seen.map(shownFiring);
  return {
    status: answer.status,
    headers: answer.headers,
    body: answer.body,
    handled,
    firing: firings[0] ?? null,
    firings,
  };
}

/** Writes rows to an outbox in a database of that name, or drains it. */
async function outboxed(client, { do: wanted, with: given }, database) {
  const rows = database(given.database);
  const drain = new Drain(client, rows);
  await drain.createTable();
  if (wanted === "outbox.drain") {
    const { unavailable, ...counts } = await drain.once();
    return { ...counts, unavailable: unavailable !== undefined };
  }
  if (wanted === "outbox.rows") {
    const select = "SELECT timer_id, dead_reason FROM tocsin_outbox ORDER BY id";
    const found = await rows.transaction((_, query) => query(select, []));
    return found.rows.map((row) => ({ timerId: row.timer_id, deadReason: row.dead_reason }));
  }
  const ids = [];
  const rolledBack = new Error("as the scenario wants it");
  const work = async (connection) => {
    for (const timer of given.timers) {
      ids.push(await outbox(connection).create(timer));
    }
    if (given.rollback) throw rolledBack;
  };
  await rows.transaction(work).catch((error) => {
    if (error !== rolledBack) throw error;
  });
  return ids;
}

/** The outcome of a step. */
async function outcomeOf(step, database) {
  const [family, name] = step.do.split(".");
  const controller = new AbortController();
  const cancel = step.cancelAfterMs && setTimeout(() => controller.abort(), step.cancelAfterMs);
  try {
    if (family === "vectors") {
      return { value: await VECTORS[name](step.with) };
    }
    if (step.do === "tries") {
      return { value: recorded(step) };
    }
    if (family === "outbox") {
      return { value: await outboxed(clientOf(step), step, database) };
    }
    const value =
      step.do === "receiver.handle"
        ? await receive(step.with, database)
        : await call(clientOf(step), step, controller.signal);
    return { value: value ?? null };
  } catch (error) {
    return { error: failure(error) };
  } finally {
    clearTimeout(cancel);
  }
}

/** Asks for steps until there are no more; returns the results. `database` opens a database for deduplication by name. */
export async function drive(control, database) {
  let outcome = { hello: { language: "typescript", can: CAN } };
  for (;;) {
    const response = await fetch(`${control}/next`, { method: "POST", body: JSON.stringify(outcome) });
    const step = await response.json();
    if (step.done) {
      return { failures: step.failures, summary: step.summary };
    }
    outcome = await outcomeOf(step, database);
  }
}
