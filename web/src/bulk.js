// Cancels, deletes, replays or retries any number of timers or calls: counts them and shows how many and which, then, once confirmed, changes
// them slice by slice. It can be stopped between slices, and reports the result in the end.
import { post, showError } from "./toast.js";
import { showTimes } from "./times.js";

const NAMED_MAX = 8;
const NAMED_REFUSED_MAX = 100;
// The share of a form's size that ids may take: the rest is for the other fields and for percent-encoding.
const FORM_SHARE = 1 / 4;

const number = (value) => value.toLocaleString("en").replaceAll(",", "\u202f");

const plural = (value, one, more) => (value === 1 ? one : more);

// The texts of each action on timers or calls. `repeatable`: it can be repeated safely if its outcome is unknown.
const KINDS = {
  cancel: (nouns, some) => ({
    ask: (count) => `Cancel ${some(count)}`,
    doing: (count) => `Canceling ${some(count)}`,
    done: "canceled",
    means: (count) => `${plural(count, "It", "They")} will not fire.`,
    other: (count) => `${number(count)} of the selected ${nouns} ${plural(count, "has", "have")} already finished.`,
    none: `No pending ${nouns}, so there is nothing to cancel.`,
    all: "None of them will fire. An in-flight attempt may still arrive.",
    fewer: `The other ${nouns} fired or changed before they could be canceled.`,
    unknown: "Count again to see how many are left.",
    keep: `Keep ${nouns}`,
    repeatable: true,
  }),
  delete: (nouns, some) => ({
    ask: (count) => `Delete ${some(count)}`,
    doing: (count) => `Deleting ${some(count)}`,
    done: "deleted",
    means: (count) => `${plural(count, "It is", "They are")} not sent, and no record of ${plural(count, "it", "them")} is kept.`,
    other: (count) => `${number(count)} of the selected ${nouns} ${plural(count, "has", "have")} already started.`,
    none: `None of the ${nouns} waits, so there is nothing to delete.`,
    all: "None of them is sent.",
    fewer: `The other ${nouns} started before they could be deleted.`,
    unknown: "Count again to see how many are left.",
    keep: `Keep ${nouns}`,
    repeatable: true,
  }),
  replay: (nouns, some) => ({
    ask: (count) => `Replay ${some(count)}`,
    doing: (count) => `Replaying ${some(count)}`,
    done: "replayed",
    means: (count) => `${plural(count, "It fires", "They fire")} again at once, under the same webhook-id.`,
    other: (count) => `${number(count)} of the selected ${nouns} ${plural(count, "is", "are")} pending or no longer ${plural(count, "exists", "exist")}.`,
    none: `No finished ${nouns}, so there is nothing to replay.`,
    all: "They are pending until they finish.",
    fewer: `The other ${nouns} changed or were removed before they could be replayed.`,
    unknown: "Count again to see how many are left.",
    keep: "Close",
    repeatable: true,
  }),
  retry: (nouns, some) => ({
    ask: (count) => `Retry ${some(count)}`,
    doing: (count) => `Retrying ${some(count)}`,
    done: "retried",
    means: (count) => `${plural(count, "It is", "They are")} sent again at once, under the same webhook-id.`,
    other: (count) => `${number(count)} of the selected ${nouns} ${plural(count, "has", "have")} not failed.`,
    none: `No failed ${nouns}, so there is nothing to retry.`,
    all: "They are running until they succeed or fail.",
    fewer: `The other ${nouns} changed or were removed before they could be retried.`,
    unknown: "Count again to see how many are left.",
    keep: "Close",
    repeatable: true,
  }),
};

function* slices(ids, most, bytesMax) {
  let slice = [];
  let bytes = 0;
  for (const id of ids) {
    const more = id.length * 3 + 3;
    if (slice.length && (slice.length === most || bytes + more > bytesMax)) { yield slice; slice = []; bytes = 0; }
    slice.push(id);
    bytes += more;
  }
  if (slice.length) yield slice;
}

// The server's response; false if it refused, which a toast explains; null without a response.
async function step(url, fields) {
  const answer = await post(url, new URLSearchParams(fields)).catch(() => null);
  if (answer?.ok) return answer.json();
  if (answer) showError(answer);
  return answer && false;
}

// The responses to all steps in turn. A failed step yields false or null and ends the sequence.
async function* steps(place, ids, confirmed, stopped) {
  const { step: url, namespace, createdBefore, max, bytesMax } = place.dataset;
  if (ids) {
    for (const slice of slices(ids, Number(max), Number(bytesMax) * FORM_SHARE)) {
      if (stopped()) return;
      const answer = await step(url, { namespace, confirmed, ids: JSON.stringify(slice) });
      yield answer;
      if (!answer) return;
    }
    return;
  }
  for (let cursor = ""; cursor !== null && !stopped();) {
    const answer = await step(cursor ? `${url}&cursor=${encodeURIComponent(cursor)}` : url, { confirmed, created_before: createdBefore });
    yield answer;
    if (!answer) return;
    cursor = answer.cursor;
  }
}

// Sums the responses of all steps.
async function run(place, ids, confirmed, stopped, show) {
  const sum = { pending: 0, other: 0, named: [], hosts: new Map(), refused: [], failed: false, lost: false };
  for await (const answer of steps(place, ids, confirmed, stopped)) {
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
  const others = sum.other ? ` ${kind.other(sum.other)}` : "";
  place.querySelector("[data-status]").textContent = sum.pending ? `${kind.means(sum.pending)}${others}` : kind.none;
  list(place, sum.named.map((id) => [mono(id)]), sum.pending - sum.named.length);
  const calls = place.querySelector("[data-hosts]");
  calls.textContent = `Destinations: ${hosts.slice(0, 4).map(([host, many]) => `${host} (${number(many)})`).join(", ")}${hosts.length > 4 ? ` and ${number(hosts.length - 4)} more destinations` : ""}.`;
  calls.hidden = !hosts.length;
}

function showDone(place, kind, sum, counted, stopped) {
  const done = sum.pending - sum.refused.length;
  place.querySelector("h2").textContent = `${number(done)} of ${number(counted)} ${kind.done}`;
  const words = [];
  if (sum.failed) words.push(`Then ${sum.lost ? "the server did not respond" : "a request failed"}. The outcome of that request is unknown. ${kind.unknown}`);
  else if (stopped && done < counted) words.push(`Stopped. The other ${kind.nouns} are unchanged.`);
  else if (!sum.refused.length && done === counted) words.push(kind.all);
  else if (done < counted) words.push(kind.fewer);
  if (sum.refused.length) words.push("These were refused:");
  place.querySelector("[data-status]").textContent = words.join(" ");
  place.querySelector("[data-hosts]").hidden = true;
  list(place, sum.refused.slice(0, NAMED_REFUSED_MAX).map(([id, href, reason]) => [mono(id, href), ` ${reason}`]), sum.refused.length - NAMED_REFUSED_MAX);
}

// `ids` null: all that match the dialog's filters. `done` is called after a complete run.
export async function openBulk(url, ids, done) {
  const answer = await fetch(url, { headers: { "hx-request": "true" } }).catch(() => null);
  if (!answer?.ok) { showError(answer); return; }
  const body = document.getElementById("dialog-body");
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const place = document.adoptNode(page.getElementById("bulk"));
  body.replaceChildren(place);
  showTimes(place);
  const dialog = document.getElementById("dialog");
  dialog.showModal();
  const { noun } = place.dataset;
  const kind = { nouns: `${noun}s`, ...KINDS[place.dataset.kind](`${noun}s`, (count) => `${number(count)} ${plural(count, noun, `${noun}s`)}`) };
  let stopped = false;
  dialog.addEventListener("close", () => { stopped = true; }, { once: true });
  const [status, bar, go, keep] = ["[data-status]", "progress", "[data-go]", "[data-keep]"].map((name) => place.querySelector(name));

  async function count() {
    go.hidden = true;
    bar.hidden = false;
    bar.removeAttribute("value");
    if (ids) bar.max = ids.length;
    const sum = await run(place, ids, "", () => stopped, (sofar) => {
      status.textContent = `Counting: ${number(sofar.pending)} so far`;
      if (ids) bar.value = sofar.pending + sofar.other;
    });
    if (stopped) return;
    bar.hidden = true;
    if (!sum.failed) place.querySelector("h2").textContent = `${kind.ask(sum.pending)}?`;
    if (sum.failed) status.textContent = `Counting failed${sum.lost ? ", because the server does not respond" : ""}. Nothing was changed, and the selection is kept.`;
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
    status.textContent = `0 of ${number(counted)} ${kind.done}`;
    keep.textContent = "Stop";
    keep.disabled = false;
    keep.onclick = () => { halted = true; keep.disabled = true; };
    const sum = await run(place, ids, "yes", () => stopped || halted, (sofar) => {
      bar.value = Math.min(sofar.pending, counted);
      status.textContent = `${number(sofar.pending - sofar.refused.length)} of ${number(counted)} ${kind.done}`;
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
