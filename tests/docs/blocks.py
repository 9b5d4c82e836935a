"""The fenced blocks of a Markdown page."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

#: What a reader types. Each such block is run, or listed in `tests.docs.machines` with the reason why not.
SHELLS = frozenset({"sh", "bash", "console"})

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block. `language` is empty if the page names none: such a block shows the output of the previous one."""

    line: int
    language: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """All blocks of the page (a path from the root), in order."""
    content = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(content.count("\n", 0, found.start()) + 1, found["language"], textwrap.dedent(found["text"]))
        for found in _FENCE.finditer(content)
    ]


def pages() -> list[str]:
    """README and all pages of docs, except decision records and the generated reference."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found if "adr" not in path.parts]


#: What differs from run to run in what a command prints: instants, times of day, durations, ids, secrets, numbers of bytes.
_VARYING = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|\d{4}-\d\d-\d\d [\d:]{8}\.\d+(?:\+00)?"
    r"|\d\d:\d\d:\d\d|[+-]?[\d.,]+ ?(?:ms|s|µs)\b|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|tk_\w+|whsec_[\w+/=]+|\b[0-9a-f]{12}\b|…"
)


def missing_lines(shown: str, printed: str) -> list[str]:
    """The shown lines that no printed line matches. `…` matches anything."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    return [line for line in shown.splitlines() if line.strip() and not any(map(_pattern(line).search, lines))]


def _pattern(shown: str) -> re.Pattern[str]:
    parts, end = [], 0
    text = " ".join(shown.split())
    for found in _VARYING.finditer(text):
        parts += [re.escape(text[end : found.start()]), r".+?"]
        end = found.end()
    return re.compile("".join([*parts, re.escape(text[end:])]) + r"\s*$")
