"""Makes `tocsin_client/_sync` from `tocsin_client/_async`: python unasync.py, or with --check to compare only."""

from __future__ import annotations

import re
import sys
from pathlib import Path

SOURCE = Path(__file__).parent / "src/tocsin_client/_async"
TARGET = SOURCE.parent / "_sync"
#: Differ in more than words.
BY_HAND = frozenset({"batcher.py", "stopping.py", "__init__.py"})
NOTE = "# Made from _async/{} by unasync.py; edit that.\n"
WORDS = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAwaitable, ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_(?=[a-z])", ""),
    (r"\b_async\b", "_sync"),
    (r"_transport_aiohttp\b", "_transport_urllib3"),
    (r"\bAiohttpTransport\b", "Urllib3Transport"),
    (r"\bimport aiohttp\b", "import urllib3"),
    (r"\baiohttp\.ClientSession\b", "urllib3.PoolManager"),
)


def synchronous(name: str) -> str:
    """The text of the file without asynchrony."""
    text = (SOURCE / name).read_text(encoding="utf-8")
    for word, replacement in WORDS:
        text = re.sub(word, replacement, text)
    return NOTE.format(name) + text


def main() -> None:
    """Runs the command."""
    stale = []
    for source in sorted(SOURCE.glob("*.py")):
        if source.name in BY_HAND:
            continue
        target, text = TARGET / source.name, synchronous(source.name)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            stale.append(target.name)
            if "--check" not in sys.argv:
                target.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"{', '.join(stale)} in _sync differ from _async: run `python unasync.py`")


if __name__ == "__main__":
    main()
