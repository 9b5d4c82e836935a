// The charts of the overview: statistics of the last hour, one point a minute.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clock, nowMs } from "./times.js";

const HEIGHT_PX = 176;
const OUTAGE_PX_MIN = 3;
// The least time span of a chart, so that a node that has just started does not show an empty hour.
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
const MS_MIN = 0.1;
const DURATIONS = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"], [1, "ms"]];
const duration = (ms) => {
  const [size, unit] = DURATIONS.find(([each]) => ms >= each) ?? DURATIONS.at(-1);
  return `${+(ms / size).toFixed(ms / size < 10 ? 1 : 0)} ${unit}`;
};
const short = (value) => (value >= 1e6 ? `${+(value / 1e6).toFixed(1)}M` : value >= 1000 ? `${+(value / 1000).toFixed(1)}k` : `${+value.toFixed(value < 10 ? 1 : 0)}`);

const CHARTS = {
  fires: { series: [["done", "done", "succeeded", true], ["retried", "waiting", "retried"], ["failed", "failed", "failed"]] },
  lag: { series: [["p50", "soft", "p50"], ["p99", "accent", "p99"]], log: true },
  created: { series: [["created", "accent", "created", true]] },
  calls: { series: [["calls_succeeded", "done", "succeeded", true], ["calls_failed", "failed", "failed"]] },
  callsLag: { series: [["calls_p50", "pending", "p50"], ["calls_p99", "firing", "p99"]], log: true },
  overdue: { series: [["overdue", "failed", "oldest overdue", true]], unit: " s" },
};

// A value without neighbours makes no line, so it is drawn as a point, however dense the points are.
function alone(plot, series) {
  const values = plot.data[series];
  return [...values.keys()].filter((i) => values[i] !== null && (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null);
}

// The range of a logarithmic axis, two decades at least: lags have no upper limit, and on a linear axis a single great lag
// would flatten all others.
function decades(_, low, high) {
  const [from, to] = [low ?? 1, high ?? 1].map((value) => Math.log10(Math.max(value, MS_MIN)));
  const first = Math.floor(from);
  return [10 ** first, 10 ** Math.max(Math.ceil(to), first + 2)];
}

function powers(plot, axis, low, high) {
  const [first, last] = [low, high].map((each) => Math.round(Math.log10(each)));
  return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
}

// A logarithmic axis has no zero.
const drawn = (wanted, values) => (wanted.log ? values.map((value) => (value === null ? null : Math.max(value, MS_MIN))) : values);

function options(wanted, width, statistics) {
  const ink = colour("faint");
  const edge = colour("line");
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: ink, font, grid: { stroke: edge, width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT_PX,
    padding: [8, 8, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    legend: { show: false },
    scales: {
      x: { range: () => { const now = nowMs() / 1000; return [Math.max(now - statistics().span, Math.min(statistics().at[0] ?? now, now - SPAN_MIN_S)), now]; } },
      y: wanted.log ? { distr: 3, range: decades } : { range: (_, low, high) => [0, Math.max(high * 1.15, 1)] },
    },
    axes: [
      { ...axis, size: 26, space: 70, values: (_, at) => at.map((s) => clock(s)) },
      { ...axis, size: 52, space: wanted.log ? 16 : 36, ...(wanted.log ? { splits: powers, filter: (_, all) => all } : {}), values: (_, at) => at.map((value) => (value === null ? "" : wanted.log ? duration(value) : short(value) + (wanted.unit ?? ""))) },
    ],
    series: [
      {},
      ...wanted.series.map(([, tone, label, fill]) => {
        const stroke = colour(tone);
        return { label, stroke, width: 1.75, fill: fill ? faint(stroke, 0.12) : undefined, points: { show: true, size: 6, fill: stroke, filter: alone }, spanGaps: false };
      }),
    ],
    hooks: { setCursor: [(plot) => showPoint(plot, wanted, statistics())], drawClear: [(plot) => shade(plot, statistics().outages)] },
  };
}

// Shades the times in which a node fired nothing, below the lines.
function shade({ ctx, bbox, valToPos, scales }, outages) {
  const place = (at, otherwise) => (at === null ? otherwise : valToPos(at, "x", true));
  ctx.save();
  ctx.fillStyle = faint(colour("suspended"), 0.18);
  for (const [from, to] of outages) {
    const left = Math.max(place(from, bbox.left), bbox.left);
    const right = Math.min(place(to, bbox.left + bbox.width), bbox.left + bbox.width);
    // An outage is at least a few pixels wide.
    if (right >= bbox.left && (to === null || to >= scales.x.min)) ctx.fillRect(Math.min(left, right - OUTAGE_PX_MIN), bbox.top, Math.max(right - left, OUTAGE_PX_MIN), bbox.height);
  }
  ctx.restore();
}

// Shows the values at the cursor in place of the legend.
function showPoint(plot, wanted, statistics) {
  const caption = plot.root.closest("figure").querySelector("figcaption");
  let point = caption.querySelector(".point");
  const at = plot.cursor.idx;
  if (at === null || at === undefined) { point?.remove(); return; }
  if (!point) { point = document.createElement("span"); point.className = "point"; caption.append(point); }
  const from = plot.data[0][at];
  const values = wanted.series.flatMap(([column, tone, label]) => {
    const value = statistics[column][at];
    const key = document.createElement("i");
    key.dataset.tone = tone;
    return [key, `${label} ${value === null ? "–" : wanted.log ? duration(value) : short(value)}${value === null ? "" : wanted.unit ?? ""}`];
  });
  point.replaceChildren(clock(from), ...values);
}

export function startCharts(root) {
  const plots = new Map();
  let statistics = null;

  const draw = (restyled) => {
    for (const place of root.querySelectorAll("[data-chart]")) {
      const wanted = CHARTS[place.dataset.chart];
      const data = [statistics.at, ...wanted.series.map(([column]) => drawn(wanted, statistics[column]))];
      if (restyled && plots.has(place)) { plots.get(place).destroy(); plots.delete(place); }
      place.querySelector(".none")?.remove();
      if (!statistics.at.length) {
        const none = document.createElement("span");
        none.className = "none";
        none.textContent = `No data yet. The first point appears within ${statistics.width} seconds.`;
        place.append(none);
      }
      if (plots.has(place)) plots.get(place).setData(data);
      else plots.set(place, new uPlot(options(wanted, place.clientWidth, () => statistics), data, place));
    }
  };
  const load = async () => {
    try {
      const answer = await fetch(document.querySelector("[data-charts]").dataset.statistics);
      if (!answer.ok) return;
      statistics = await answer.json();
      draw(false);
    } catch {
      // The page header shows that the server is unreachable; the charts keep their data.
    }
  };
  new ResizeObserver(() => { for (const [place, plot] of plots) plot.setSize({ width: place.clientWidth, height: HEIGHT_PX }); }).observe(root);
  document.addEventListener("tocsin:statistics", load);
  for (const event of ["tocsin:theme", "tocsin:zone"]) document.addEventListener(event, () => { if (statistics) draw(true); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (statistics) draw(true); });
  load();
}
