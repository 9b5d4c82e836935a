// Changes an element into what the server shows now, in place.
import { Idiomorph } from "idiomorph";
import { showTimes } from "./times.js";

// Whether a menu is open stays as it is, and so does what scripts have marked a row with.
const KEPT = { details: ["open"], tr: ["class", "aria-current", "data-left"] };

export function morph(now, next) {
  // Times are shown as this page shows them before they are compared, so that none flickers.
  showTimes(next);
  Idiomorph.morph(now, next, {
    callbacks: {
      beforeAttributeUpdated: (name, node) => !KEPT[node.localName]?.includes(name),
      beforeNodeMorphed: (node) => !node.classList?.contains("pick"),
    },
  });
}
