// What open pages state of the server and the database, and what they ask for by themselves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Element, HANGS, NONE, Page, ok, outage, refusal } from "./page.js";

const OUT = "The database does not answer.";
const UNANSWERED = "No answer from tocsin.example";
const out = (afterMs) => () => outage(OUT, afterMs);
// What a stream is answered, and not the page's other requests.
const ofStream = (answer) => (url) => (url === "/ui/live" ? answer : ok());

async function polled(options) {
  const page = new Page({ polled: true, ...options });
  await page.pass(2.5);
  assert.equal(page.state, "Live | ");
  page.states = [];
  return page;
}

async function streaming(options) {
  const page = new Page(options);
  page.send({ changed: 1 });
  await page.pass(2.5);
  assert.equal(page.state, "Live | ");
  page.states = [];
  return page;
}

test("a polled page is never live during an outage, and announces it once", async () => {
  const page = await polled();
  page.answer = out(50);
  await page.pass(1);
  page.states = [];
  await page.pass(20);
  assert.deepEqual(page.states, [`As of 12:00:01 | ${OUT}`]);
  assert.equal(page.outage.notices, 1);
  page.answer = () => ok();
  await page.pass(2);
  assert.equal(page.state, "Live | ");
});

test("a database that hangs is not shown as a server that does not answer", async () => {
  const page = await polled();
  // The first read began before the outage is known; later ones wait for less.
  page.answer = out(20_000);
  await page.pass(1);
  page.answer = out(4000);
  await page.pass(60);
  assert.deepEqual(page.states, ["Live | ", "As of 12:00:01 | ", `As of 12:00:01 | ${OUT}`]);
});

test("a polled page states that the server does not answer, once, until it does", async () => {
  const page = await polled();
  page.answer = () => NONE;
  await page.pass(60);
  assert.deepEqual(page.states, ["Live | ", `As of 12:00:01 | ${UNANSWERED} since 12:00:01.`]);
  assert.equal(page.outage.notices, 1);
  page.answer = out(50);
  await page.pass(2);
  assert.equal(page.state, `As of 12:00:01 | ${OUT}`);
  page.answer = () => NONE;
  await page.pass(10);
  assert.match(page.state, new RegExp(`^As of 12:00:01 . ${UNANSWERED} since 12:01:`));
  page.answer = () => ok();
  await page.pass(2);
  assert.equal(page.state, "Live | ");
});

test("a server that takes a request and never answers it does not answer", async () => {
  const page = await polled();
  page.answer = () => HANGS;
  await page.pass(20);
  assert.equal(page.state, "As of 12:00:01 | ");
  await page.pass(20);
  assert.equal(page.state, `As of 12:00:01 | ${UNANSWERED} since 12:00:01.`);
});

for (const status of [429, 500]) {
  test(`a page refused with ${status} comes from a server that answers`, async () => {
    const page = await polled();
    page.answer = () => refusal(status);
    await page.pass(20);
    assert.deepEqual(page.states, ["Live | ", "As of 12:00:01 | "]);
    page.answer = () => ok();
    await page.pass(2);
    assert.equal(page.state, "Live | ");
  });
}

test("the page with which a proxy refuses a read is not shown within the page", async () => {
  const page = await polled();
  page.answer = () => refusal(503, "<title>503</title><h1>Service Temporarily Unavailable</h1>");
  await page.pass(20);
  assert.deepEqual(page.states, ["Live | ", "As of 12:00:01 | "]);
  page.answer = () => ok();
  await page.pass(2);
  assert.equal(page.state, "Live | ");
});

test("a refused stream leaves the page as of then", async () => {
  const page = await streaming();
  page.answer = ofStream(refusal(503));
  // Each time, until the stream is opened again.
  for (const seconds of [2, 4, 8, 16, 30]) {
    page.refuse();
    await page.pass(seconds + 0.5);
  }
  assert.deepEqual(page.states, ["As of 12:00:00 | "]);
  page.send({ changed: 1 });
  await page.pass(1);
  assert.equal(page.state, "Live | ");
});

test("a stream that finds no server states so, until the next event", async () => {
  const page = await streaming();
  for (let times = 0; times < 5; times += 1) {
    page.breakOff();
    await page.pass(2);
  }
  assert.deepEqual(page.states, ["Live | ", `As of 12:00:00 | ${UNANSWERED} since 12:00:00.`]);
  page.send({ changed: 1 });
  await page.pass(0);
  assert.equal(page.state, "Live | ");
});

// A healthy server that has nothing new sends an event every ten seconds.
async function quiet(page, seconds) {
  for (let passed = 0; passed < seconds; passed += 10) {
    page.send({ changed: 1 });
    await page.pass(10);
  }
}

test("a quiet stream stays live, and is not opened again", async () => {
  const page = await streaming();
  await quiet(page, 120);
  assert.deepEqual([page.states, page.streams.length], [["Live | "], 1]);
});

test("a page whose stream goes silent states so within half a minute, until an event comes", async () => {
  const page = await streaming();
  await quiet(page, 20);
  await page.pass(10);
  assert.equal(page.state, "Live | ");
  await page.pass(8);
  assert.equal(page.state, `As of 12:00:12 | ${UNANSWERED} since 12:00:12.`);
  assert.equal(page.stream.readyState, 0);
  page.send({ changed: 2 });
  await page.pass(1);
  assert.equal(page.state, "Live | ");
});

test("a stream whose server takes the connection and never answers is opened again and again", async () => {
  const page = await streaming();
  await page.pass(120);
  assert.match(page.state, new RegExp(UNANSWERED));
  assert.deepEqual([page.streams.length, page.streams.filter((each) => each.readyState !== 2).length], [5, 1]);
});

test("Now does not keep the verdict of a stream that goes silent", async () => {
  const page = new Page({ now: true });
  page.send({ title: "Everything fires on time.", text: "", tone: "ok", version: 1 });
  await page.pass(27);
  assert.equal(page.sentence.textContent, `${UNANSWERED} since 12:00:00.`);
  page.send({ title: "Timers fire late.", text: "By 20 s.", tone: "late", version: 1 });
  await page.pass(1);
  assert.equal(page.sentence.textContent, "Timers fire late.");
});

test("a page in the background has no stream that could be silent", async () => {
  const page = await streaming();
  page.look(false);
  await page.pass(600);
  assert.deepEqual([page.states, page.streams.length], [["Live | "], 1]);
});

test("one failed read whose repetition succeeds is not shown", async () => {
  const page = await streaming();
  let fails = true;
  page.answer = () => (fails ? NONE : ok());
  page.send({ changed: 2 });
  await page.pass(0.5);
  fails = false;
  await page.pass(9);
  assert.deepEqual(page.states, ["Live | "]);
});

test("what a stream has brought stays while reads are refused, and goes with it", async () => {
  const page = await streaming();
  page.send(`${OUT} Nothing fires.`, "outage");
  page.answer = out(50);
  page.send({ changed: 2 });
  await page.pass(9);
  assert.deepEqual(page.states.map((each) => each.split(" | ")[1]), [`${OUT} Nothing fires.`]);
  page.answer = () => ok();
  page.send("", "outage");
  await page.pass(2);
  assert.equal(page.state, "Live | ");
});

test("an outage that the page came with goes with the first event that has none", async () => {
  const page = new Page({ outage: OUT });
  page.send({ changed: 1 });
  await page.pass(1);
  assert.equal(page.state, "Live | ");
});

test("Now keeps its verdict when the stream is refused", async () => {
  const page = new Page({ now: true });
  const verdict = { title: "Timers fire late.", text: "By 2 s.", tone: "late", version: 1 };
  page.send(verdict);
  await page.pass(1);
  for (let times = 0; times < 3; times += 1) {
    page.breakOff();
    await page.pass(2);
  }
  assert.equal(page.sentence.textContent, `${UNANSWERED} since 12:00:00.`);
  page.refuse();
  await page.pass(9);
  assert.equal(page.sentence.textContent, "Timers fire late.");
  assert.deepEqual({ ...page.sentence.dataset }, { tone: "late", asOf: "As of 12:00:00." });
  page.send({ ...verdict, title: "All is well." });
  await page.pass(0);
  assert.equal(page.sentence.textContent, "All is well.");
  assert.equal(page.sentence.dataset.asOf, undefined);
});

test("an empty list whose search for new rows was refused is live once it was answered", async () => {
  const page = await streaming({ list: true });
  page.answer = out(50);
  page.send({ changed: 2 });
  await page.pass(9);
  assert.match(page.state, new RegExp(OUT));
  assert.equal(page.states.filter((each) => each.startsWith("Live")).length, 1);
  page.answer = () => ok();
  await page.pass(3);
  assert.equal(page.state, "Live | ");
});

test("tabs are counted when the counters have changed, or a minute has passed", async () => {
  const page = await streaming({ list: true });
  await page.pass(17.5);
  const counts = () => page.askedFor("/ui/tabs").length;
  assert.equal(counts(), 1);
  for (let beats = 0; beats < 3; beats += 1) {
    page.send({ changed: 1 });
    await page.pass(10);
  }
  assert.equal(counts(), 1);
  page.send({ changed: 2 });
  await page.pass(10);
  assert.equal(counts(), 2);
  await page.pass(60);
  assert.equal(counts(), 3);
});

test("what a page asks for by itself counts as no use of the sign-in", async () => {
  const [list, page] = [await streaming({ list: true }), await polled()];
  await list.pass(10);
  await page.pass(10);
  for (const { url, headers } of [...list.asked, ...page.asked]) assert.equal(headers["tocsin-background"], "true", url);
  assert.deepEqual([...new Set([...list.asked, ...page.asked].map(({ url }) => url.split("?")[0]))], ["/ui/fresh/timers", "/ui/tabs/timers", "/page"]);
});

test("a page whose sign-in has ended stays, and asks for nothing more", async () => {
  const page = await polled();
  page.answer = () => refusal(401);
  await page.pass(2);
  assert.equal(page.state, "Signed out | You are signed out.");
  const asked = page.asked.length;
  await page.pass(60);
  assert.deepEqual([page.asked.length, page.counted, page.reloads, page.state], [asked, 0, 0, "Signed out | You are signed out."]);
});

for (const [fails, answer] of Object.entries({ "gets no answer": HANGS, "is refused otherwise": refusal(403, "", 4000), "is answered": { ...ok(), afterMs: 4000 } })) {
  test(`a page that has stopped does not change any more when a request that was on its way ${fails}`, async () => {
    const row = new Element({ dataset: { key: "default/t", v: "1" } });
    const page = await streaming({ list: true, row });
    page.answer = (url) => (url === "/ui/rows" ? answer : ok());
    page.send({ changed: 2 });
    await page.pass(1);
    const asked = page.asked.length;
    page.send({}, "bye");
    await page.pass(60);
    assert.deepEqual([page.asked.length, page.state], [asked, "Signed out | You are signed out."]);
  });
}

const FINAL = [
  [401, "Signed out | You are signed out.", "/login?to=%2Fpage%3Fq%3Da"],
  [403, "Not updated | The server no longer lets this page read what it shows.", "/page?q=a"],
  [404, "Not updated | What this page shows no longer exists.", "/page?q=a"],
];

for (const [status, words, href] of FINAL) {
  test(`a stream refused with ${status} is not asked for again until somebody comes back to the page`, async () => {
    const page = await streaming({ list: true, search: "?q=a" });
    page.answer = ofStream(refusal(status));
    page.refuse();
    await page.pass(1);
    assert.equal(page.state, words);
    assert.equal(page.link.href, href);
    const before = [page.streams.length, page.asked.length, page.counted];
    await page.pass(600);
    assert.deepEqual([page.streams.length, page.asked.length, page.counted], before);
    page.look(false);
    page.look(true);
    assert.equal(page.streams.length, before[0] + 1);
    assert.equal(page.state, words);
    page.send({ changed: 2 });
    await page.pass(1);
    assert.deepEqual([page.state, page.reloads], status === 401 ? [words, 1] : ["Live | ", 0]);
  });

  test(`a read refused with ${status} is not repeated`, async () => {
    const page = await polled({ search: "?q=a" });
    page.answer = () => refusal(status);
    await page.pass(3);
    assert.equal(page.state, words);
    assert.equal(page.link.href, href);
    const before = page.asked.length;
    await page.pass(600);
    assert.equal(page.asked.length, before);
    page.answer = () => ok();
    page.look(false);
    page.look(true);
    await page.pass(3);
    assert.deepEqual([page.state, page.reloads], status === 401 ? [words, 1] : ["Live | ", 0]);
  });
}

test("a page without access states why the server denies it, but not the page of a proxy", async () => {
  const why = "This page belongs to an earlier sign-in.";
  const unexplained = "The server no longer lets this page read what it shows.";
  const answers = [["application/json", JSON.stringify({ message: why }), why], ["application/json", "{", unexplained], ["text/html", why, unexplained]];
  for (const [type, body, words] of answers) {
    const denied = refusal(403, body, 50, type);
    const [list, page] = [await streaming({ list: true }), await polled()];
    list.answer = ofStream(denied);
    list.refuse();
    page.answer = () => denied;
    for (const each of [list, page]) {
      await each.pass(3);
      assert.equal(each.state, `Not updated | ${words}`);
    }
  }
});

test("a page that is signed in again is reloaded, and sends nothing under its former sign-in", async () => {
  const page = await streaming({ list: true, row: new Element({ dataset: { key: "default/t", v: "1" } }) });
  page.send({}, "bye");
  const asked = page.asked.length;
  page.look(false);
  page.look(true);
  await page.pass(5);
  page.send({ changed: 2 });
  await page.pass(30);
  assert.deepEqual([page.reloads, page.asked.length], [1, asked]);
});

// Whether a stream is opened again within some seconds, and not before.
async function reopens(page, seconds) {
  const before = page.streams.length;
  await page.pass(seconds - 0.1);
  const early = page.streams.length - before;
  await page.pass(0.4);
  return [early, page.streams.length - before];
}

const FAULTS = {
  "refused with 429": [(page) => page.refuse(), 429],
  "refused with 503": [(page) => page.refuse(), 503],
  "that breaks off": [(page) => page.breakOff(), 503],
};

for (const [fault, [happens, status]] of Object.entries(FAULTS)) {
  test(`a stream ${fault} is opened again, each time later up to half a minute, until it has an event`, async () => {
    const page = await streaming();
    page.answer = ofStream(refusal(status));
    for (const seconds of [2, 4, 8, 16, 30, 30]) {
      happens(page);
      assert.deepEqual(await reopens(page, seconds), [0, 1]);
    }
    page.send({ changed: 2 });
    await page.pass(1);
    assert.equal(page.state, "Live | ");
    happens(page);
    assert.deepEqual(await reopens(page, 2), [0, 1]);
    page.random = 0;
    happens(page);
    assert.deepEqual(await reopens(page, 2), [0, 1]);
  });
}

test("a page that somebody comes back to opens its stream at once, and soon again", async () => {
  const page = await streaming();
  for (let times = 0; times < 6; times += 1) {
    page.breakOff();
    await page.pass(31);
  }
  page.breakOff();
  const before = page.streams.length;
  page.look(false);
  await page.pass(600);
  assert.equal(page.streams.length, before);
  page.look(true);
  assert.equal(page.streams.length, before + 1);
  page.breakOff();
  assert.deepEqual(await reopens(page, 2), [0, 1]);
});

test("a stream that is no longer refused when the page asks why is opened again", async () => {
  const page = await streaming();
  page.refuse();
  assert.deepEqual(await reopens(page, 2), [0, 1]);
  page.send({ changed: 2 });
  await page.pass(1);
  assert.equal(page.state, "Live | ");
});

test("numbers beside other pages are asked for again, but not after a sign-out or where a form is filled in", async () => {
  const page = await streaming();
  await page.pass(20);
  assert.equal(page.counted, 2);
  page.send({}, "bye");
  await page.pass(60);
  assert.deepEqual([page.counted, page.state], [2, "Signed out | You are signed out."]);
  const form = new Page({ form: true, stream: false });
  await form.pass(60);
  assert.deepEqual([form.counted, form.asked.length], [0, 0]);
});

// A list with one row, and what its page sends of that.
async function listing(key) {
  const cell = new Element({ marks: [], append(...marks) { this.marks = marks; }, querySelector: () => null });
  const row = new Element({ dataset: { key, v: "1" }, parentElement: new Element(), querySelector: (wanted) => (wanted === ".c-state" ? cell : null) });
  const page = await streaming({ list: true, row });
  const become = async (dataset, next) => {
    page.changes = [new Element({ dataset: { of: row.dataset.key, ...dataset }, rows: next ? [next] : [], querySelector: () => "→ completed" })];
    page.send({ changed: page.asked.length });
    await page.pass(2.5);
  };
  const sent = () => JSON.parse(page.askedFor("/ui/rows").at(-1).body.get("rows"));
  return { page, row, part: page.rowsPart, cell, become, sent };
}

test("a run that has ended keeps its row, with what became of its timer beside it", async () => {
  const { page, row, cell, become, sent } = await listing("default@1/t");
  await become({ since: "2" });
  assert.deepEqual([row.dataset.key, cell.marks.at(-1), page.left.size], ["default@1/t", "→ completed", 0]);
  page.send({ changed: "later" });
  await page.pass(2.5);
  assert.deepEqual(sent(), [["default@1/t", "2"]]);
});

test("a timer's row is that of its run once this has ended", async () => {
  const { page, row, become, sent } = await listing("default/t");
  await become({ left: "" }, new Element({ dataset: { key: "default@2/t", v: "2" } }));
  assert.deepEqual([...page.left], [row]);
  assert.deepEqual([...page.rows.keys()], ["default@2/t"]);
  page.send({ changed: "later" });
  await page.pass(2.5);
  assert.deepEqual(sent(), [["default@2/t", "2"]]);
});

test("a timer's row goes once it would be that of a run which the list has already", async () => {
  const { page, row, become } = await listing("default/t");
  const run = new Element({ dataset: { key: "default@2/t", v: "2" } });
  page.rows.set("default@2/t", run);
  await become({}, new Element({ dataset: { key: "default@2/t", v: "2" } }));
  assert.deepEqual([...page.rows], [["default@2/t", run]]);
  assert.equal(row.removed, true);
});

test("what became of a timer since its run is asked for until it is settled", async () => {
  const { page, part, become, sent } = await listing("default@1/t");
  await become({ since: "2" });
  part.querySelector = (wanted) => wanted.split(", ").some((each) => each.startsWith(".since .state:is(")) || null;
  const before = page.askedFor("/ui/rows").length;
  await page.pass(3);
  assert.equal(page.askedFor("/ui/rows").length, before + 3);
  assert.deepEqual(sent(), [["default@1/t", "2"]]);
  part.querySelector = () => null;
  await page.pass(3);
  assert.equal(page.askedFor("/ui/rows").length, before + 3);
});
