/** JSON with numbers that JavaScript can't hold, such as integers beyond 2⁵³: they pass through it as they were written. */

/** Marks the text of such a number where the value has a string instead. No other string can begin like it. */
const MARK = `number ${crypto.randomUUID()} `;
const MARKED = new RegExp(`"${MARK}([^"]*)"`, "g");
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** A double holds every decimal of so many significant digits. */
const DIGITS_HELD = 15;

/** As `JSON.parse`; `restored` turns the marks of numbers that can't be held into the numbers again. */
export function parseExactly(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const marked = text.replace(TOKEN, (token) => (token.startsWith('"') || isHeld(token) ? token : `"${MARK}${token}"`));
  return marked === text ? value : JSON.parse(marked);
}

/** JSON text in which marks are the numbers that they stand for. */
export function restored(text: string): string {
  return text.includes(MARK) ? text.replace(MARKED, "$1") : text;
}

function isHeld(token: string): boolean {
  const digits = token
    .replace(/[eE].*/, "")
    .replace(/\D/g, "")
    .replace(/^0+/, "");
  const value = Number(token);
  return digits.length <= DIGITS_HELD && Number.isFinite(value) && (value !== 0 || digits === "");
}
