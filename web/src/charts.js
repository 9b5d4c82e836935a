// The charts of the overview: the last hour, a point every ten seconds.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

const HEIGHT_PX = 176;
const GAP_PX_MIN = 3;
// Of a node that has just been started, not a whole empty hour.
const SPAN_MIN_S = 600;
const colour = (name) => {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};
const faint = (text, share) => text.replace(/^rgb\(/, "rgba(").replace(/\)$/, `, ${share})`);
const short = (value) => (value >= 1e6 ? `${+(value / 1e6).toFixed(1)}M` : value >= 1000 ? `${+(value / 1000).toFixed(1)}k` : `${+value.toFixed(value < 10 ? 1 : 0)}`);

const CHARTS = {
  rings: { series: [["done", "done", "answered", true], ["retried", "retrying", "to be repeated"], ["failed", "failed", "failed"]] },
  lag: { series: [["p50", "pending", "half"], ["p99", "ringing", "99 of 100"]], gaps: true },
  created: { series: [["created", "ringing", "created", true]] },
  calls: { series: [["calls_succeeded", "done", "succeeded", true], ["calls_failed", "failed", "failed"]] },
  callsLag: { series: [["calls_p50", "pending", "half"], ["calls_p99", "ringing", "99 of 100"]], gaps: true },
  window: { series: [["window", "ringing", "in memory", true], ["overdue", "failed", "overdue", false, "seconds"]] },
};

// A value without neighbours makes no line: it is shown as a point.
function alone(plot, series, shown) {
  if (!shown) return null;
  const values = plot.data[series];
  return [...values.keys()].filter((i) => values[i] !== null && (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null);
}

function options(wanted, width, figures) {
  const ink = colour("ink-soft");
  const edge = colour("edge");
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: ink, font, grid: { stroke: edge, width: 1 }, ticks: { show: false } };
  const two = wanted.series.some(([, , , , scale]) => scale);
  return {
    width,
    height: HEIGHT_PX,
    padding: [8, 8, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    legend: { show: false },
    scales: {
      x: { range: () => { const now = Date.now() / 1000; return [Math.max(now - figures().span, Math.min(figures().at[0] ?? now, now - SPAN_MIN_S)), now]; } },
      y: { range: (_, low, high) => [0, Math.max(high * 1.15, 1)] },
      ...(two ? { seconds: { range: (_, low, high) => [0, Math.max(high * 1.15, 10)] } } : {}),
    },
    axes: [
      { ...axis, size: 26, space: 70, values: (_, at) => at.map((s) => new Date(s * 1000).toLocaleTimeString("sv-SE", { hour: "2-digit", minute: "2-digit" })) },
      { ...axis, size: 48, space: 36, values: (_, at) => at.map(short) },
    ],
    series: [
      {},
      ...wanted.series.map(([, tone, label, fill, scale]) => {
        const stroke = colour(tone);
        return { label, stroke, width: 1.75, scale: scale ?? "y", fill: fill ? faint(stroke, 0.12) : undefined, points: { size: 5, fill: stroke, filter: alone }, spanGaps: false };
      }),
    ],
    hooks: { setCursor: [(plot) => showPoint(plot, figures())], drawClear: [(plot) => shade(plot, figures().gaps)] },
  };
}

// Where some node's part is missing, under the lines.
function shade({ ctx, bbox, valToPos, scales }, gaps) {
  const place = (at, otherwise) => (at === null ? otherwise : valToPos(at, "x", true));
  ctx.save();
  ctx.fillStyle = faint(colour("held"), 0.18);
  for (const [from, to] of gaps) {
    const left = Math.max(place(from, bbox.left), bbox.left);
    const right = Math.min(place(to, bbox.left + bbox.width), bbox.left + bbox.width);
    // One of a moment shall be seen, too.
    if (right >= bbox.left && (to === null || to >= scales.x.min)) ctx.fillRect(Math.min(left, right - GAP_PX_MIN), bbox.top, Math.max(right - left, GAP_PX_MIN), bbox.height);
  }
  ctx.restore();
}

const lacking = (gaps, from, to) => [...new Set(gaps.filter(([begin, end]) => (begin ?? 0) < to && (end ?? Infinity) > from).map(([, , node]) => node))];

// What the cursor is on, in words, beside the title.
function showPoint(plot, { gaps, width }) {
  const caption = plot.root.closest("figure").querySelector("figcaption");
  let said = caption.querySelector(".point");
  const at = plot.cursor.idx;
  if (at === null || at === undefined) { said?.remove(); return; }
  if (!said) { said = document.createElement("span"); said.className = "point quiet"; caption.append(said); }
  const time = new Date(plot.data[0][at] * 1000).toLocaleTimeString("sv-SE");
  const from = plot.data[0][at];
  const missing = lacking(gaps, from, from + width);
  said.textContent = `${time}: ${plot.series.slice(1).map((each, i) => `${each.label} ${plot.data[i + 1][at] === null ? "–" : short(plot.data[i + 1][at])}`).join(", ")}${missing.length ? `, without ${missing.join(", ")}` : ""}`;
}

export function startCharts(root) {
  const plots = new Map();
  let figures = null;

  const draw = (anew) => {
    for (const place of root.querySelectorAll("[data-chart]")) {
      const wanted = CHARTS[place.dataset.chart];
      const data = [figures.at, ...wanted.series.map(([column]) => figures[column])];
      if (anew && plots.has(place)) { plots.get(place).destroy(); plots.delete(place); }
      place.querySelector(".none")?.remove();
      if (!figures.at.length) {
        const none = document.createElement("span");
        none.className = "none";
        none.textContent = "The first point comes within ten seconds.";
        place.append(none);
      }
      if (plots.has(place)) plots.get(place).setData(data);
      else plots.set(place, new uPlot(options(wanted, place.clientWidth, () => figures), data, place));
    }
  };
  const load = async () => {
    try {
      const answer = await fetch(document.querySelector("[data-charts]").dataset.figures);
      if (!answer.ok) return;
      figures = await answer.json();
      draw(false);
    } catch {
      // The bar says that the server is lost; the charts stay as they were.
    }
  };
  new ResizeObserver(() => { for (const [place, plot] of plots) plot.setSize({ width: place.clientWidth, height: HEIGHT_PX }); }).observe(root);
  document.addEventListener("tocsin:figures", load);
  document.addEventListener("tocsin:theme", () => { if (figures) draw(true); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (figures) draw(true); });
  load();
}
