"""The tables and the plot of the plan, for the documentation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

#: What has been kept of each play, by its name.
Kept = dict[str, dict[str, Any]]

_PAGE, _PLOT = "docs/explanation/scale.md", "docs/images/scale.svg"
_BEGIN, _END = "<!-- simulated: begin -->", "<!-- simulated: end -->"
_SIZES = (4, 16, 64, 200)
_NOT_PLAYED = "—"
#: The lines of the plot: each a load and kinds of messages, in an order in which neighbours differ.
_LINES = (
    ("signals that links are alive", "idle", ("keep-alive",), "#1f6feb"),
    ("forwarded writes", "creates", ("forwards",), "#2da44e"),
    ("reports of flows, full", "full flows", ("reports of flows",), "#bf3989"),
    ("quota exchange", "quotas", ("quota exchange",), "#9a6700"),
)


def write_pages(root: Path, kept: Kept) -> None:
    """Writes the tables into the page, between its marks, and the plot beside it."""
    page = root / _PAGE
    before, rest = page.read_text().split(_BEGIN)
    after = rest.split(_END)[1]
    page.write_text(f"{before}{_BEGIN}\n{_tables(kept)}\n{_END}{after}")
    (root / _PLOT).write_text(_plot(kept))


def _cost(kept: Kept, nodes: int, load: str) -> dict[str, Any] | None:
    return kept.get(f"cost {nodes} 1024 {load}")


def _number(found: float | None) -> str:
    if found is None:
        return _NOT_PLAYED
    return f"{found:,.0f}" if found >= 10 else f"{found:.1f}"


def _sum(cost: dict[str, Any] | None, what: str, kinds: Iterable[str]) -> float | None:
    return None if cost is None else sum(cost[what].get(kind, 0.0) for kind in kinds)


def _tables(kept: Kept) -> str:
    def row(title: str, load: str, what: str, *kinds: str) -> list[str]:
        return [title, *(_number(_sum(_cost(kept, nodes, load), what, kinds)) for nodes in _SIZES)]

    def of(title: str, load: str, field: str) -> list[str]:
        costs = [_cost(kept, nodes, load) for nodes in _SIZES]
        return [title, *(_number(None if cost is None else cost[field]) for cost in costs)]

    costs = [
        ["a node, each second, 1,024 shards", *(f"{nodes} nodes" for nodes in _SIZES)],
        row("idle: heartbeats", "idle", "calls", "heartbeat"),
        row("idle: versions of namespaces, flows and other rules read", "idle", "calls", "read versions of records"),
        row("idle: rows of members read", "idle", "rows", "read members"),
        row("idle: rows of shards read", "idle", "rows", "read shards"),
        of("idle: links opened by the node", "idle", "links"),
        row("idle: signals that links are alive, and answers", "idle", "messages", "keep-alive"),
        row("10 creates/s: commits", "creates", "calls", "commit"),
        row("10 creates/s: messages with forwarded writes", "creates", "messages", "forwards"),
        row("10 creates/s, quotas: questions and answers", "quotas", "messages", "quota exchange"),
        row("200 flows with room: reports", "flows", "messages", "reports of flows"),
        row("200 full flows: reports", "full flows", "messages", "reports of flows"),
        row("200 full flows: notices", "full flows", "messages", "notices of free slots"),
        row("one full flow for all: reports", "one full flow", "messages", "reports of flows"),
        of("200 full flows: bytes of all messages", "full flows", "message_bytes"),
    ]
    faults = [["what happens", "nodes", "all shards have owners again after", "longest without an owner"]]
    for name, fault in kept.items():
        if name.startswith("fault"):
            faults.append([fault["fault"], str(fault["nodes"]), f"{fault['over_s']:.1f} s", f"{fault['gap_s']:.1f} s"])
    return f"{_table(costs)}\n\n{_table(_in_order(faults))}"


def _in_order(rows: list[list[str]]) -> list[list[str]]:
    """The rows behind the head by what happens and the number of nodes, what is alike together."""
    head, *rest = rows
    order = ("one dies", "three die", "ten die", "the store answers in 50 ms, one dies 3 s later")
    places = {name: place for place, name in enumerate(order)}
    return [head, *sorted(rest, key=lambda row: (places.get(row[0], len(order)), row[0], int(row[1])))]


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "| --- " * len(rows[0]) + "|")
    return "\n".join(lines)


_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _RIGHT = 640, 330, 60, 20, 50, 220
_MOST = 1_000.0


def _plot(kept: Kept) -> str:
    """Messages that a node sends a second, by the number of nodes; both axes are logarithmic."""
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(nodes: int) -> float:
        return _LEFT + width * _log(nodes / _SIZES[0]) / _log(_SIZES[-1] / _SIZES[0])

    def y(messages: float) -> float:
        return _TOP + height * (1 - _log(max(messages, 1.0)) / _log(_MOST))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'font-family="sans-serif" font-size="12">',
        "<title>Messages that a node sends each second, by the number of nodes</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
    ]
    for messages in (1, 10, 100, 1_000):
        at = y(messages)
        parts.append(f'<path d="M{_LEFT} {at:.1f}H{_LEFT + width}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{messages:,}</text>')
    parts += [
        f'<text x="{x(nodes):.1f}" y="{_TOP + height + 18}" text-anchor="middle">{nodes}</text>' for nodes in _SIZES
    ]
    parts.append(f'<text x="{_LEFT + width / 2:.0f}" y="{_HEIGHT - 10}" text-anchor="middle">nodes</text>')
    for place, (title, load, kinds, color) in enumerate(_LINES):
        found = [(nodes, _sum(_cost(kept, nodes, load), "messages", kinds)) for nodes in _SIZES]
        points = [(x(nodes), y(messages)) for nodes, messages in found if messages is not None]
        line = " ".join(f"{at_x:.1f},{at_y:.1f}" for at_x, at_y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="3" fill="{color}"/>' for at_x, at_y in points]
        at = _TOP + 20 + place * 22
        parts.append(f'<path d="M{_WIDTH - _RIGHT + 14} {at - 4}h18" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{_WIDTH - _RIGHT + 38}" y="{at}">{title}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _log(number: float) -> float:
    return math.log10(number)
