"""Hand-written pages name only existing settings and metrics, and the first one links to all others."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from tests.support.cases import each

from tocsin.settings.declared import SETTINGS, TABLES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*/*.md")]
CHART = yaml.safe_load((ROOT / "deploy/helm/tocsin/values.yaml").read_text(encoding="utf-8"))
METRICS = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")


@each("page", PAGES)
def test_pages_name_metrics_that_exist(page):
    # The Python SDK's package, the outbox's table and a resource of Terraform are no metrics.
    named = set(re.findall(r"`(tocsin_(?!client\b|outbox\b|credential\b)\w+)", page.read_text(encoding="utf-8")))
    assert {name for name in named if not re.search(rf"\b{name}\b", METRICS)} == set()


@each("page", PAGES)
def test_pages_name_settings_that_exist(page):
    named = set(re.findall(rf"`((?:{'|'.join(TABLES)})\.\w+)\b(?!/)", page.read_text(encoding="utf-8")))
    files = {name for name in named if name.rpartition(".")[2] in ("py", "db", "md", "log", "yaml")}
    # The chart's values have a table of that name, too.
    files |= {f"secrets.{name}" for name in CHART["secrets"]}
    assert named - files - {setting.name for setting in SETTINGS.values()} == set()


def test_the_first_page_links_to_every_other() -> None:
    linked = set(re.findall(r"\]\(([^)#]+\.md)", (ROOT / "docs/index.md").read_text(encoding="utf-8")))
    # Decisions and runbooks have lists of their own; API references are made when the site is built.
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").glob("*/*.md")}
    assert {page for page in pages - linked if not page.startswith(("adr/", "runbooks/"))} == {"sdks/api.md"}
