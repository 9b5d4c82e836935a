// A page with the real live.js, outage.js, times.js and toast.js, but stand-ins for the document, the clock, the server and the
// list.
import { build } from "esbuild";
import { createContext, runInContext } from "node:vm";

const STAND_INS = {
  morph: "export const morph = (now, next) => { Object.assign(now.dataset, next.dataset); };",
  peek: "export const peekIsOpen = () => false;",
  rows: "export const { gone, markLeft, markNext, partsInView, results, rows, showCount, start } = globalThis.list;",
};
const plugin = {
  name: "stand-ins",
  setup({ onLoad }) {
    onLoad({ filter: /(morph|peek|rows)\.js$/ }, ({ path }) => ({ contents: STAND_INS[path.match(/(\w+)\.js$/)[1]] }));
  },
};
const { outputFiles } = await build({
  entryPoints: [new URL("../src/live.js", import.meta.url).pathname], bundle: true, write: false, format: "iife", globalName: "live", plugins: [plugin],
});
const script = `${outputFiles[0].text}; live.startLive();`;

export const BEGIN = Date.UTC(2026, 0, 1, 12);
// The answers of a server.
export const ok = (text = "") => ({ status: 200, text });
export const refusal = (status, text = "", afterMs = 50, type = "text/html") => ({ status, text, afterMs, type });
// That of a server whose database does not answer; a proxy without a server also answers 503.
export const outage = (text, afterMs) => ({ ...refusal(503, text, afterMs), headers: [["tocsin-outage", "yes"]] });
export const NONE = null;
export const HANGS = { afterMs: Infinity };

export class Element {
  constructor(fields = {}) { Object.assign(this, { dataset: {}, textContent: "", innerHTML: "", hidden: false, ...fields }); }
  querySelector() { return null; }
  querySelectorAll() { return []; }
  matches() { return false; }
  contains() { return false; }
  toggleAttribute() {}
  remove() { this.removed = true; }
  addEventListener() {}
  removeEventListener() {}
}

class Outage extends Element {
  children = [];
  notices = 0;
  get innerHTML() { return this.children.map((each) => each.text).join(""); }
  set innerHTML(text) { this.replaceChildren(...(text ? [{ text, matches: () => true }] : [])); }
  get firstElementChild() { return this.children[0] ?? null; }
  querySelector() { return this.children.find((each) => each.stopped) ?? null; }
  replaceChildren(...children) { this.children = children; this.notices += children.length; }
}

// `polled`, `now`, `list`, `row`, `form`, `stream`, `outage`: what the page has; `row` is the list's only one; `search`: of its
// URL. `answer(url, options)` returns what the server answers; `states` are what the page has stated, one after the other.
export class Page {
  nowMs = BEGIN;
  timers = [];
  streams = [];
  asked = [];
  states = [];
  reloads = 0;
  submits = 0;
  counted = 0;
  // What the next answer has of rows; and the rows that have left.
  changes = [];
  left = new Set();
  answer = () => ok();
  // The waits of which a part is random are as long as they can be.
  random = 1;

  constructor({ polled = false, now = false, list = false, row = null, form = false, stream = !polled, search = "", outage: outageText = "" } = {}) {
    const linkState = new Element();
    linkState.lastElementChild = new Element();
    const outage = new Outage();
    const sentence = now ? new Element({ textContent: "All is well.", dataset: { tone: "ok" }, parentElement: { offsetHeight: 40, style: {} } }) : null;
    const part = polled ? new Element({ id: "part", dataset: { poll: "" } }) : new Element({ id: "part" });
    const results = list ? new Element({ dataset: { live: "/ui/live", link: "/timers", rows: "/ui/rows", rowsMax: "9", scope: "" } }) : null;
    const rows = new Map(row ? [[row.dataset.key, row]] : []);
    const rowsPart = new Element({ rows: row ? [row] : [] });
    Object.assign(this, { linkState, outage, sentence, rows, rowsPart });
    const notice = (kind) => ({ cloneNode: () => {
      const parts = { b: new Element(), span: new Element(), a: new Element() };
      return { [kind]: true, parts, get text() { return parts.b.textContent; }, matches: () => false, querySelector: (name) => parts[name], remove: () => outage.replaceChildren() };
    } });
    const byId = {
      "link-state": linkState, outage, sentence, main: new Element(), results, tabs: new Element(), unreached: { content: notice("unreached") },
      stopped: { content: notice("stopped") },
      "sentence-text": now ? new Element({ textContent: "It is." }) : null,
      filters: new Element({ requestSubmit: () => { this.submits += 1; } }),
    };
    const bySelector = {
      "[data-one], [data-poll], #now": () => (form ? null : part),
      "#outage > :not([data-unreached])": () => outage.children.find((each) => !each.unreached),
      "#outage [data-unreached]": () => outage.children.find((each) => each.unreached),
      "#outage [data-stopped]": () => outage.children.find((each) => each.stopped),
      "main [data-form]": () => form,
      "meta[name='csrf']": () => ({ content: "" }),
      "#picked[data-some]": () => null,
      "#results[data-unread]": () => null,
    };
    const document = {
      hidden: false, documentElement: new Element({ dataset: { now: BEGIN } }), activeElement: null,
      body: new Element({ dataset: stream ? { live: "/ui/live" } : {} }),
      getElementById: (id) => byId[id] ?? null,
      querySelector(selector) {
        if (!(selector in bySelector)) throw new Error(`no stand-in for ${selector}`);
        return bySelector[selector]() || null;
      },
      querySelectorAll: (selector) => (selector === ".rail-nav .badge" ? [{ dispatchEvent: () => { this.counted += 1; } }] : []),
      addEventListener: (name, act) => { if (name === "visibilitychange") this.#seen = act; },
      dispatchEvent() {},
    };
    this.#document = document;
    const { streams } = this;
    const [page, Clock] = [this, class extends Date {
      constructor(...given) { super(...(given.length ? given : [page.nowMs])); }
      static now() { return page.nowMs; }
    }];
    class Response { constructor({ status, text = "", type = "", headers = [] }) { Object.assign(this, { status, ok: status < 400, headers: new Map([["content-type", type], ...headers]), text: async () => text, json: async () => JSON.parse(text) }); } }
    this.Response = Response;
    outage.innerHTML = outageText;
    class EventSource {
      static CONNECTING = 0; static OPEN = 1; static CLOSED = 2;
      constructor(url) { Object.assign(this, { url: new URL(url, "http://tocsin.example/").href, readyState: 0, listeners: {} }); streams.push(this); }
      addEventListener(name, act) { this.listeners[name] = act; }
      close() { this.readyState = 2; }
    }
    runInContext(script, createContext({
      document, EventSource, Response, URL, URLSearchParams, Event, CustomEvent, console,
      Math: Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(Math), random: { value: () => this.random } }), Date: Clock, performance: { now: () => this.nowMs, getEntriesByType: () => [] },
      localStorage: { getItem: () => "utc" },
      location: { host: "tocsin.example", pathname: "/page", search, toString: () => "http://tocsin.example/page", reload: () => { this.reloads += 1; } },
      setTimeout: (act, ms = 0) => this.#plan(act, ms), clearTimeout: (id) => this.#forget(id),
      setInterval: (act, ms) => this.#plan(act, ms, ms),
      addEventListener() {}, requestAnimationFrame: (act) => this.#plan(act, 16),
      AbortSignal: { timeout: (ms) => ({ ms }) },
      DOMParser: class { parseFromString() { return { getElementById: () => null, querySelectorAll: (wanted) => (wanted === "tbody" ? page.changes.splice(0) : []) }; } },
      fetch: (url, options) => this.#fetch(url, options),
      list: {
        gone: new Set(), rows, results: () => results, partsInView: () => (row ? [rowsPart] : []), showCount() {}, markNext() {},
        markLeft: (each, whether) => this.left[whether ? "add" : "delete"](each),
        start: () => ({ cursor: "", known: [], whole: "yes" }),
      },
    }));
  }

  #document;
  #seen;

  #plan(act, ms, every = 0) {
    const timer = { act, at: this.nowMs + ms, every };
    this.timers.push(timer);
    return timer;
  }

  #forget(timer) { this.timers = this.timers.filter((each) => each !== timer); }

  #fetch(url, options) {
    const answer = this.answer(url, options);
    this.asked.push({ url, headers: options.headers, body: options.body });
    return new Promise((done, fail) => {
      if (answer === NONE) { fail(new TypeError("no answer")); return; }
      const { afterMs = 10 } = answer;
      const patienceMs = options.signal?.ms ?? Infinity;
      if (afterMs < patienceMs) this.#plan(() => done(new this.Response(answer)), afterMs);
      else if (patienceMs < Infinity) this.#plan(() => fail(new Error("no answer in time")), patienceMs);
    });
  }

  get stream() { return this.streams.at(-1); }

  // The link of what is stated.
  get link() { return this.outage.children[0]?.parts.a; }

  // Somebody looks at the page, or at another one.
  look(whether) {
    this.#document.hidden = !whether;
    this.#seen();
  }

  // An event of the stream, which is open then.
  send(data, name = "message") {
    if (this.stream.readyState !== 1) {
      this.stream.readyState = 1;
      this.stream.onopen?.();
    }
    if (this.stream.readyState !== 1) return;
    const act = name === "message" ? this.stream.onmessage : this.stream.listeners[name];
    act({ data: JSON.stringify(data) });
  }

  // The stream breaks off, and the browser connects again; or the server refuses it with an error response.
  breakOff() { this.stream.readyState = 0; this.stream.onerror(); }
  refuse() { this.stream.readyState = 2; this.stream.onerror(); }

  get state() { return `${this.linkState.lastElementChild.textContent} | ${this.outage.innerHTML}`; }

  // What is asked of the server under a path.
  askedFor(path) { return this.asked.filter((each) => each.url.startsWith(path)); }

  // Lets time pass, and all happen that happens in it.
  async pass(seconds) {
    const end = this.nowMs + seconds * 1000;
    for (;;) {
      await new Promise(setImmediate);
      if (this.states.at(-1) !== this.state) this.states.push(this.state);
      const [next] = this.timers.filter((each) => each.at <= end).sort((a, b) => a.at - b.at);
      if (!next) break;
      this.nowMs = next.at;
      if (next.every) next.at += next.every;
      else this.#forget(next);
      next.act();
    }
    this.nowMs = end;
  }
}
