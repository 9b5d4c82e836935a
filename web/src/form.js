// The form of a timer or a call: quick choices, header rows, time zones, and the editor, which only this form loads.
import { localWords, nowMs, zoneMinutes } from "./times.js";

// Sets the zone fields whenever a form's data is read.
function setZones(event) {
  for (const hidden of event.target.querySelectorAll("[data-zone-of]")) {
    event.formData.set(hidden.name, String(zoneMinutes(event.target.elements[hidden.dataset.zoneOf].value)));
  }
}

// Explains a date beside its field.
function showDates() {
  for (const note of document.querySelectorAll("[data-note-of]")) {
    const [words, tone] = localWords(note.closest("form").elements[note.dataset.noteOf].value);
    if (note.textContent !== words) note.textContent = words;
    note.hidden = !words;
    note.dataset.tone = tone;
  }
}

function choose(form, value) {
  const radio = form.querySelector(`input[name="when"][value="${value}"]`);
  if (radio) radio.checked = true;
}

function showChips(form) {
  for (const chip of form.querySelectorAll("[data-delay]")) {
    const chosen = chip.dataset.delay === form.elements.delay.value && form.elements.when.value === "in";
    chip.setAttribute("aria-pressed", String(chosen));
  }
}

function clicked(event, form) {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.delay) {
    form.elements.delay.value = button.dataset.delay;
    choose(form, "in");
    form.elements.delay.dispatchEvent(new Event("change", { bubbles: true }));
  } else if (button.dataset.act === "add-pair") {
    const pairs = form.querySelectorAll(".pair");
    const next = pairs[pairs.length - 1].cloneNode(true);
    for (const input of next.querySelectorAll("input")) input.value = "";
    pairs[pairs.length - 1].after(next);
    next.querySelector("input").focus();
  } else if (button.dataset.act === "remove-pair") {
    const pair = button.closest(".pair");
    if (form.querySelectorAll(".pair").length > 1) pair.remove();
    else for (const input of pair.querySelectorAll("input")) input.value = "";
    form.dispatchEvent(new Event("change", { bubbles: true }));
  } else if (button.dataset.act === "new-tenant") {
    const input = form.elements.tenant;
    input.value = newId();
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }
}

// A UUID of version 7: the time in milliseconds, then random bits.
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  new DataView(bytes.buffer).setUint16(0, Math.floor(Date.now() / 2 ** 32));
  new DataView(bytes.buffer).setUint32(2, Date.now() % 2 ** 32);
  bytes[6] = 0x70 | bytes[6] & 0x0f;
  bytes[8] = 0x80 | bytes[8] & 0x3f;
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

// Fills an empty field with a time half an hour from now.
function offerTime(input) {
  if (input.value) return;
  const at = new Date(nowMs() + 30 * 60000);
  const two = (number) => String(number).padStart(2, "0");
  input.value = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`;
}

function startEditor(form) {
  const place = form.querySelector("[data-editor]");
  if (!place) return;
  import(place.dataset.src).then((part) => {
    const editor = part.startEditor(place.querySelector("textarea"), form);
    form.querySelector("[data-act='format']").addEventListener("click", editor.format);
  });
}

export function startForm() {
  // Applies to all forms with a local date, including those added later.
  document.addEventListener("formdata", setZones);
  for (const type of ["input", "change", "tocsin:zone"]) document.addEventListener(type, showDates);
  setUpForm();
}

// Sets up the page's form, which a script may just have replaced.
export function setUpForm() {
  showDates();
  const form = document.querySelector("form[data-form]");
  if (!form) return;
  form.addEventListener("click", (event) => clicked(event, form));
  form.addEventListener("focusin", (event) => {
    const input = event.target.closest("[data-picks]");
    if (!input) return;
    if (input.dataset.picks === "at") offerTime(input);
    choose(form, input.dataset.picks);
  });
  form.addEventListener("change", (event) => {
    if (event.target.value === "at" && event.target.name === "when") offerTime(form.elements.at);
    showChips(form);
  });
  form.addEventListener("input", (event) => {
    showChips(form);
    const wrong = event.target.getAttribute?.("aria-describedby");
    if (wrong?.startsWith("wrong-")) {
      event.target.removeAttribute("aria-invalid");
      document.getElementById(wrong)?.remove();
    }
    const custom = /^(attempts|initial_interval|multiplier|max_interval|max_duration)$/.test(event.target.name);
    if (custom) form.querySelector("input[name='retry'][value='custom']").checked = true;
    // The rule of a schedule is that whose field was changed last.
    const rule = /^(cron|every)$/.test(event.target.name) && form.querySelector(`input[name='rule'][value='${event.target.name}']`);
    if (rule) rule.checked = true;
  });
  showChips(form);
  startEditor(form);
}
