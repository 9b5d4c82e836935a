// A JSON editor in place of a textarea, which the form still sends.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { linter, lintGutter, lintKeymap } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { showToast } from "./toast.js";

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--accent)" },
  { tag: tags.string, color: "var(--ink)" },
  { tag: tags.number, color: "var(--late)" },
  { tag: [tags.bool, tags.null], color: "var(--waiting)" },
]);
const appearance = EditorView.theme({
  "&": { border: "1px solid var(--edge)", borderRadius: "6px", background: "var(--paper)", color: "var(--ink)", fontSize: "13px", overflow: "hidden" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", maxHeight: "480px", overflow: "auto" },
  // On the scroller it would leave the gutters as short as the text.
  ".cm-content, .cm-gutter": { minHeight: "170px" },
  ".cm-gutters": { background: "var(--paper)", color: "var(--faint)", border: "0", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { background: "var(--hover)" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--accent-soft)" },
  ".cm-tooltip": { background: "var(--over)", border: "1px solid var(--edge)", color: "var(--ink)" },
  ".cm-placeholder": { color: "var(--faint)" },
});
const check = jsonParseLinter();

// Indents JSON. Numbers and strings stay exactly as entered.
export function formatted(text) {
  JSON.parse(text);
  let out = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const token of text.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g)) {
    if (token === "{" || token === "[") { depth += 1; out += token + line(); }
    else if (token === "}" || token === "]") { depth -= 1; out = /[[{]\s*$/.test(out) ? out.trimEnd() + token : out + line() + token; }
    else if (token === ",") out += token + line();
    else out += token === ":" ? ": " : token;
  }
  return out;
}

export function startEditor(area, form) {
  const host = document.createElement("div");
  area.after(host);
  // The editor's styles live in a shadow root, so the page's content security policy does not apply to them.
  const root = host.attachShadow({ mode: "open" });
  const copyToArea = EditorView.updateListener.of((update) => {
    if (!update.docChanged) return;
    area.value = update.state.doc.toString();
    area.dispatchEvent(new Event("input", { bubbles: true }));
  });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: area.value,
      extensions: [
        lineNumbers(), history(), drawSelection(), highlightActiveLine(), bracketMatching(), indentOnInput(), json(),
        linter((each) => (each.state.doc.toString().trim() ? check(each) : []), { delay: 400 }), lintGutter(),
        syntaxHighlighting(colours), appearance, copyToArea, placeholder(area.placeholder), EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": area.getAttribute("aria-label"), spellcheck: "false" }),
        // Tab moves the focus, as in other fields, so the editor never traps it.
        keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
      ],
    }),
  });
  // It takes over from a field that the user may be typing into.
  const at = area.selectionEnd;
  const focused = document.activeElement === area;
  area.hidden = true;
  if (focused) {
    view.dispatch({ selection: { anchor: Math.min(at, view.state.doc.length) } });
    view.focus();
  }
  host.addEventListener("keydown", (event) => event.stopPropagation());
  const format = () => {
    try {
      const text = formatted(view.state.doc.toString().trim() || "null");
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    } catch (error) {
      showToast(`Not valid JSON: ${error.message}`, "failed");
    }
  };
  form.addEventListener("submit", () => { area.value = view.state.doc.toString(); });
  return { format, view };
}
