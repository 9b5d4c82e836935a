"""The generated reference pages are current, and every setting is described."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from pathlib import Path

from tocsin.config import Settings, setting_name
from tocsin.config.alias import ALIASES

SCRIPT = Path(__file__).parents[2] / "scripts" / "reference.py"


def reference():
    spec = importlib.util.spec_from_file_location("reference", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_current():
    for path, text in reference().pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: run `make docs`"


def rows_of_settings():
    return [
        line.strip("| ").split(" | ") for line in reference().settings_page().splitlines() if line.startswith("| `")
    ]


def test_every_setting_has_a_description_of_its_own():
    rows = rows_of_settings()
    assert len(rows) == len(Settings.model_fields) - 1
    settings_of = defaultdict(list)
    for setting, *_, text in rows:
        settings_of[text].append(setting)
    assert "" not in settings_of
    assert [settings for settings in settings_of.values() if len(settings) > 1] == []


def test_aliases_are_beside_their_settings():
    texts = {setting: text for setting, *_, text in rows_of_settings()}
    for alias, (field, _) in ALIASES.items():
        assert f"`{alias}`" in texts[f"`{setting_name(field)}`"]
