// The forms of timers, schedules and calls: quick choices, header rows, local dates, and the editor, which loads once its field
// has the focus. The server answers a form's input with all that changes on the page.
import { fieldInstant, fieldText, localWords, nowMs, zoneMinutes } from "./times.js";
import { showToast } from "./toast.js";

const POLICY = /^(attempts|initial_interval|multiplier|max_interval|max_duration)$/;

// Explains a date beside its field.
function showDates() {
  for (const note of document.querySelectorAll("[data-note-of]")) {
    const [words, tone] = localWords(note.closest("form").elements[note.dataset.noteOf].value, note.dataset.onPast);
    if (note.textContent !== words) note.textContent = words;
    note.hidden = !words;
    note.dataset.tone = tone;
  }
}

function choose(form, name, value) {
  const radio = form.querySelector(`input[name="${name}"][value="${value}"]`);
  if (radio) radio.checked = true;
}

function showDelays(form) {
  for (const button of form.querySelectorAll("[data-delay]")) {
    const chosen = button.dataset.delay === form.elements.delay.value && form.elements.when.value === "in";
    button.setAttribute("aria-pressed", String(chosen));
  }
}

// Fills an empty field with a time half an hour from now.
function offerTime(input) {
  if (input.value) return;
  input.value = fieldText(nowMs() + 30 * 60000).slice(0, 16);
  showDates();
}

function changed(element) {
  element.dispatchEvent(new Event("change", { bubbles: true }));
}

const acts = {
  "add-pair": (button, form) => {
    const last = [...form.querySelectorAll(".pair")].at(-1);
    const next = last.cloneNode(true);
    for (const input of next.querySelectorAll("input")) input.value = "";
    last.after(next);
    next.querySelector("input").focus();
  },
  "remove-pair": (button, form) => {
    const pair = button.closest(".pair");
    if (form.querySelectorAll(".pair").length > 1) pair.remove();
    else for (const input of pair.querySelectorAll("input")) input.value = "";
    changed(form);
  },
  format: async (button, form) => (await startEditor(form))?.format(),
};

// The editor takes the place of its text field, and the focus from it. It is loaded and started once. The field works without it:
// a node of another release, to which a page may come during an upgrade, does not have it.
function startEditor(form) {
  const place = form.querySelector("[data-editor]");
  place.editor ??= import(place.dataset.src).then((part) => part.startEditor(place.querySelector("textarea"), form)).catch(() => {
    showToast("The editor could not be loaded. The field works without it.", "failed");
    place.editor = null;
  });
  return place.editor;
}

// A part of the answer to a form's input. What hasn't changed stays: a click on it goes on, and nothing is read out again. The
// error of the field at hand waits until the user leaves it, but for the fields of a rule, whose preview is gone meanwhile.
function beforeSwap(event) {
  const { fragment, target } = event.detail;
  if (fragment.firstElementChild && target.isEqualNode?.(fragment.firstElementChild)) event.detail.shouldSwap = false;
  if (!target.id?.startsWith("wrong-")) return;
  const field = document.getElementById(`field-${target.id.slice(6)}`);
  const wrong = fragment.textContent.trim() !== "";
  if (wrong && field === document.activeElement && !/^(sentence|cron|zone)$/.test(field.name)) event.detail.shouldSwap = false;
  else if (wrong) field?.setAttribute("aria-invalid", "true");
  else field?.removeAttribute("aria-invalid");
}

// A click that leaves a field ends before the server is asked about that field, whose error may move what is being clicked.
function startPatience() {
  let down = false;
  let held = null;
  document.addEventListener("pointerdown", () => { down = true; });
  for (const type of ["pointerup", "pointercancel"]) document.addEventListener(type, () => {
    down = false;
    if (held) setTimeout(held);
    held = null;
  });
  document.addEventListener("htmx:confirm", (event) => {
    if (!down || !event.target.matches("form[data-form]")) return;
    event.preventDefault();
    held = () => event.detail.issueRequest(true);
  });
}

// Both ends of a time range have UTC in the page, in the request and in the address, which can be shared; here they are in the
// zone that the page shows, as their labels state.
const bounds = (within) => within.querySelectorAll("[data-utc]");

function showBounds() {
  for (const field of bounds(document)) if (field.dataset.utc) field.value = fieldText(Number(field.dataset.utc));
}

function startBounds() {
  for (const field of bounds(document)) {
    // What the browser has restored is in the zone shown already.
    const [ms, sent] = [field.value, field.defaultValue].map((text) => Date.parse(`${text}Z`));
    field.dataset.utc = field.value && (ms === sent ? ms : fieldInstant(field.value));
    field.addEventListener("input", () => { field.dataset.utc = field.value && fieldInstant(field.value); });
  }
  showBounds();
  document.addEventListener("tocsin:zone", showBounds);
}

export function startForm() {
  // The server suggests the reader's time zone for a schedule; the first page of all is too early for that.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = document.cookie.includes("tocsin-zone=");
  document.cookie = `tocsin-zone=${zone};path=/;max-age=31536000;samesite=strict`;
  // Sets the zone fields whenever a form's data is read.
  document.addEventListener("formdata", ({ target, formData }) => {
    for (const hidden of target.querySelectorAll("[data-zone-of]")) {
      formData.set(hidden.name, String(zoneMinutes(target.elements[hidden.dataset.zoneOf].value)));
    }
    for (const field of bounds(target)) if (field.value) formData.set(field.name, `${new Date(fieldInstant(field.value)).toISOString().slice(0, 19)}Z`);
  });
  startBounds();
  for (const type of ["input", "change", "tocsin:zone"]) document.addEventListener(type, showDates);
  document.addEventListener("htmx:oobBeforeSwap", beforeSwap);
  const within = (type, handle) => document.addEventListener(type, (event) => {
    const form = event.target.closest("form[data-form]");
    if (form) handle(event, form);
  });
  within("click", (event, form) => {
    const button = event.target.closest("button");
    if (button?.dataset.delay) {
      form.elements.delay.value = button.dataset.delay;
      choose(form, "when", "in");
      changed(form.elements.delay);
    } else if (button) acts[button.dataset.act]?.(button, form);
  });
  within("focusin", ({ target }, form) => {
    if (target.matches("[data-editor] textarea")) startEditor(form);
    if (!target.dataset.picks) return;
    if (target.dataset.picks === "at") offerTime(target);
    choose(form, "when", target.dataset.picks);
  });
  within("change", ({ target }, form) => {
    if (target.value === "at" && target.name === "when") offerTime(form.elements.at);
    showDelays(form);
  });
  within("input", ({ target }, form) => {
    if (POLICY.test(target.name)) choose(form, "retry", "custom");
    showDelays(form);
  });
  startPatience();
  setUpForm();
  // Once htmx listens, too.
  document.addEventListener("DOMContentLoaded", () => {
    const field = !known && document.querySelector("form[data-fresh] input[name='zone']");
    if (!field || field.value === zone) return;
    field.value = zone;
    changed(field);
  });
}

// Sets up the page's form, which a script may just have replaced.
export function setUpForm() {
  showDates();
  const form = document.querySelector("form[data-form]");
  if (form) showDelays(form);
}
