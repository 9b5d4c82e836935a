"""The generated reference pages are current, and every setting is described."""

from __future__ import annotations

import importlib.util
import re
from collections import defaultdict
from pathlib import Path

from tocsin.settings import load_settings, setting_name
from tocsin.settings.declared import SETTINGS, by_topic
from tocsin.settings.sources import ALIASES

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
    page = (SCRIPT.parent.parent / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    return [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]


def test_every_setting_has_a_topic_and_a_description_of_its_own():
    grouped = [setting.name for declared in by_topic().values() for setting in declared]
    assert sorted(grouped) == sorted(setting.name for setting in SETTINGS.values())
    rows = rows_of_settings()
    assert [setting for setting, *_ in rows] == [f"`{setting}`" for setting in grouped]
    settings_of = defaultdict(list)
    for setting, *_, text in rows:
        settings_of[text].append(setting)
    assert "" not in settings_of
    assert [settings for settings in settings_of.values() if len(settings) > 1] == []


def test_example_file_has_the_defaults(tmp_path):
    lines = (SCRIPT.parent.parent / "docs" / "reference" / "tocsin.toml").read_text(encoding="utf-8").splitlines()
    assigned = [line.removeprefix("#") for line in lines if re.match(r"#[a-z]", line)]
    assert len(assigned) == len(SETTINGS)
    path = tmp_path / "tocsin.toml"
    path.write_text("\n".join(line for line in assigned if not line.endswith("# unset")), encoding="utf-8")
    assert load_settings({"config": path}) == load_settings()


def test_aliases_are_beside_their_settings():
    texts = {setting: text for setting, *_, text in rows_of_settings()}
    for alias, (field, _) in ALIASES.items():
        assert f"`{alias}`" in texts[f"`{setting_name(field)}`"]
