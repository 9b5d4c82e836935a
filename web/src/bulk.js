// Cancels any number of timers, or runs them again: first counts them and shows how many and which, then, once told so, does
// it a slice at a time. It can be stopped between slices, and says in the end what became of all of them.
import { post, sayAnswer } from "./say.js";
import { showTimes } from "./times.js";

const NAMED_MAX = 8;
const NAMED_REFUSED_MAX = 100;
// Room that a slice leaves in a form for what else is in it, and for what the form makes of some characters.
const FORM_SHARE = 1 / 4;

const number = (value) => value.toLocaleString("en").replaceAll(",", "\u202f");
const timers = (value) => `${number(value)} ${value === 1 ? "timer" : "timers"}`;

const some = (value, one, more) => (value === 1 ? one : more);

// What is said of each, and whether it may simply be done once more when it isn't known what came of it.
const KINDS = {
  cancel: {
    ask: (count) => `Cancel ${timers(count)}`,
    doing: (count) => `Canceling ${timers(count)}`,
    done: "canceled",
    means: "They will not fire.",
    other: (count) => `The other ${number(count)} selected ${some(count, "has", "have")} finished already.`,
    none: "Nothing of it is pending, so there is nothing to cancel.",
    all: "None of them fires. An attempt that was under way may still arrive.",
    fewer: "The others had fired, changed or gone before their turn came.",
    unknown: "counting again tells how many are left.",
    keep: "Keep them",
    repeatable: true,
  },
  again: {
    ask: (count) => `Run ${timers(count)} again`,
    doing: (count) => `Running ${timers(count)} again`,
    done: "run again",
    means: "Each run is a new timer with a new id, which fires at once. What has finished keeps its id and its history.",
    other: (count) => `The other ${number(count)} selected ${some(count, "is", "are")} pending or gone.`,
    none: "Nothing of it has finished, so there is nothing to run again.",
    all: "The new timers are among the upcoming ones until they have finished.",
    fewer: "The others had changed or gone before their turn came.",
    unknown: "look for ids that end in “-run-” and a number before you try it again, or they run twice.",
    keep: "Leave them",
    repeatable: false,
  },
};

function* slices(ids, most, octetsMax) {
  let slice = [];
  let octets = 0;
  for (const id of ids) {
    const more = id.length * 3 + 3;
    if (slice.length && (slice.length === most || octets + more > octetsMax)) { yield slice; slice = []; octets = 0; }
    slice.push(id);
    octets += more;
  }
  if (slice.length) yield slice;
}

// What the server answered; false for a refusal, which is said, null for no answer.
async function step(url, fields) {
  const answer = await post(url, new URLSearchParams(fields)).catch(() => null);
  if (answer?.ok) return answer.json();
  if (answer) sayAnswer(answer);
  return answer && false;
}

// The answers to every step in turn; false or null, and no further one, when a step failed.
async function* answers(place, ids, sure, stopped) {
  const { step: url, namespace, asked, max, bytesMax } = place.dataset;
  if (ids) {
    for (const slice of slices(ids, Number(max), Number(bytesMax) * FORM_SHARE)) {
      if (stopped()) return;
      const answer = await step(url, { namespace, sure, ids: JSON.stringify(slice) });
      yield answer;
      if (!answer) return;
    }
    return;
  }
  for (let cursor = ""; cursor !== null && !stopped();) {
    const answer = await step(cursor ? `${url}&cursor=${encodeURIComponent(cursor)}` : url, { sure, asked });
    yield answer;
    if (!answer) return;
    cursor = answer.cursor;
  }
}

// Adds up what the steps say.
async function run(place, ids, sure, stopped, show) {
  const sum = { pending: 0, other: 0, named: [], hosts: new Map(), refused: [], failed: false, lost: false };
  for await (const answer of answers(place, ids, sure, stopped)) {
    if (!answer) { sum.failed = true; sum.lost = answer === null; break; }
    sum.pending += answer.pending;
    sum.other += answer.other;
    sum.named.push(...answer.named.slice(0, NAMED_MAX - sum.named.length));
    sum.refused.push(...answer.refused);
    for (const [host, many] of answer.hosts) sum.hosts.set(host, (sum.hosts.get(host) ?? 0) + many);
    show(sum);
  }
  return sum;
}

function list(place, items, rest) {
  const which = place.querySelector("[data-which]");
  which.replaceChildren(...items.map((item) => {
    const line = document.createElement("li");
    line.append(...item);
    return line;
  }));
  if (rest > 0) {
    const line = document.createElement("li");
    line.textContent = `and ${number(rest)} more`;
    which.append(line);
  }
  which.hidden = !which.children.length;
}

const mono = (text, href) => {
  const element = document.createElement(href ? "a" : "span");
  element.className = "mono";
  element.textContent = text;
  if (href) element.href = href;
  return element;
};

function showCounted(place, kind, sum) {
  const hosts = [...sum.hosts].sort((a, b) => b[1] - a[1]);
  const said = sum.other ? ` ${kind.other(sum.other)}` : "";
  place.querySelector("[data-said]").textContent = sum.pending ? `${kind.means}${said}` : kind.none;
  list(place, sum.named.map((id) => [mono(id)]), sum.pending - sum.named.length);
  const calls = place.querySelector("[data-hosts]");
  calls.textContent = `They call ${hosts.slice(0, 4).map(([host, many]) => `${host} (${number(many)})`).join(", ")}${hosts.length > 4 ? ` and ${number(hosts.length - 4)} more destinations` : ""}.`;
  calls.hidden = !hosts.length;
}

function showDone(place, kind, sum, counted, stopped) {
  const done = sum.pending - sum.refused.length;
  place.querySelector("h2").textContent = `${number(done)} of ${number(counted)} ${kind.done}`;
  const words = [];
  if (sum.failed) words.push(`Then ${sum.lost ? "the server did not answer" : "a request failed"}. What became of its timers isn’t known; ${kind.unknown}`);
  else if (stopped && done < counted) words.push("Stopped. The others are as they were.");
  else if (!sum.refused.length && done === counted) words.push(kind.all);
  else if (done < counted) words.push(kind.fewer);
  if (sum.refused.length) words.push("These were refused:");
  place.querySelector("[data-said]").textContent = words.join(" ");
  place.querySelector("[data-hosts]").hidden = true;
  list(place, sum.refused.slice(0, NAMED_REFUSED_MAX).map(([id, href, reason]) => [mono(id, href), ` ${reason}`]), sum.refused.length - NAMED_REFUSED_MAX);
}

// `ids` null: everything that the dialog's own step finds. `done` is called when it has come to its end.
export async function openBulk(url, ids, done) {
  const answer = await fetch(url, { headers: { "hx-request": "true" } }).catch(() => null);
  if (!answer?.ok) { sayAnswer(answer); return; }
  const body = document.getElementById("dialog-body");
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const place = document.adoptNode(page.getElementById("bulk"));
  body.replaceChildren(place);
  showTimes(place);
  const dialog = document.getElementById("dialog");
  dialog.showModal();
  const kind = KINDS[place.dataset.kind];
  let stopped = false;
  dialog.addEventListener("close", () => { stopped = true; }, { once: true });
  const [said, bar, go, keep] = ["[data-said]", "progress", "[data-go]", "[data-keep]"].map((name) => place.querySelector(name));

  async function count() {
    go.hidden = true;
    bar.hidden = false;
    bar.removeAttribute("value");
    if (ids) bar.max = ids.length;
    const sum = await run(place, ids, "", () => stopped, (sofar) => {
      said.textContent = `Counting: ${number(sofar.pending)} so far`;
      if (ids) bar.value = sofar.pending + sofar.other;
    });
    if (stopped) return;
    bar.hidden = true;
    if (!sum.failed) place.querySelector("h2").textContent = `${kind.ask(sum.pending)}?`;
    if (sum.failed) said.textContent = `They could not be counted${sum.lost ? ", because the server does not answer" : ""}. Nothing was done, and the selection is kept.`;
    else showCounted(place, kind, sum);
    go.textContent = sum.failed ? "Count again" : kind.ask(sum.pending);
    go.hidden = !sum.failed && !sum.pending;
    keep.textContent = go.hidden ? "Close" : kind.keep;
    go.onclick = sum.failed ? count : () => act(sum.pending);
  }

  async function act(counted) {
    go.hidden = true;
    bar.hidden = false;
    bar.max = counted;
    bar.value = 0;
    delete keep.dataset.act;
    let halted = false;
    place.querySelector("h2").textContent = kind.doing(counted);
    said.textContent = `0 of ${number(counted)} ${kind.done}`;
    keep.textContent = "Stop";
    keep.disabled = false;
    keep.onclick = () => { halted = true; keep.disabled = true; };
    const sum = await run(place, ids, "yes", () => stopped || halted, (sofar) => {
      bar.value = Math.min(sofar.pending, counted);
      said.textContent = `${number(sofar.pending - sofar.refused.length)} of ${number(counted)} ${kind.done}`;
    });
    if (!sum.failed) done();
    bar.hidden = true;
    showDone(place, kind, sum, counted, halted);
    go.textContent = "Count again";
    go.hidden = !sum.failed || !kind.repeatable;
    go.onclick = count;
    Object.assign(keep, { textContent: "Close", disabled: false, onclick: () => dialog.close() });
    keep.focus();
  }

  keep.focus();
  await count();
}
