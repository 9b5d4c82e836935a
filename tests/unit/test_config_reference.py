"""The reference pages are those that the code makes, and every setting is described."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "reference.py"


def reference():
    spec = importlib.util.spec_from_file_location("reference", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_current():
    for path, text in reference().pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: run `make docs`"


def test_every_setting_has_a_description():
    rows = [line for line in reference().settings_page().splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.split(" | ")[-1].strip(" |") in ("", "None")] == []
