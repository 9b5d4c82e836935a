"""What the page of the store shows of the facts that a database reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tocsin.model.errors import Unavailable
from tocsin.ports.store import StoreFacts
from tocsin.web.pages.admin import store
from tocsin.web.pages.admin.store import StorePage, facts_of, size


def test_only_what_a_database_reports_is_shown() -> None:
    assert facts_of(StoreFacts()) == []
    assert facts_of(StoreFacts("18.0", 1_536, 1_000_000, 0, 8, 0)) == [
        ("Version", "18.0"),
        ("Size", "1.5 KiB"),
        ("Write-ahead log", "0 B"),
        ("Rows of timers", "about 1,000,000"),
        ("Connections", "0 of 8 in use by this node"),
    ]


def test_sizes_are_written_in_their_unit() -> None:
    assert [size(each) for each in (1_023, 1_020 * 2**10, 1_023.7 * 2**10, 3_000 * 2**40)] == [
        "1,023 B", "1,020 KiB", "1 MiB", "3,000 TiB",
    ]  # fmt: skip
    assert [size(each) for each in (5, 2_048, 8.1 * 2**20, 2**40)] == ["5 B", "2 KiB", "8.1 MiB", "1 TiB"]


class Service:
    """A service whose database reports about itself, unless it is away."""

    paused_reason = None

    def __init__(self) -> None:
        self.reads = self.asked = 0
        self.away = False

    async def store_facts(self) -> StoreFacts:
        self.reads += 1
        if self.away:
            raise Unavailable("away")
        return StoreFacts("18.0")

    async def cluster(self) -> SimpleNamespace:
        self.asked += 1
        return SimpleNamespace(nodes=[SimpleNamespace(vitals=None), SimpleNamespace(node="a", vitals="vitals")])


async def test_page_that_is_drawn_again_does_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_READ_INTERVAL_S", 3_600.0, raising=False)
    service = Service()

    async def present() -> None:
        return None

    async def of(error: Exception) -> str:
        return str(error)

    site = SimpleNamespace(
        service=service,
        outages=SimpleNamespace(present=present, of=of),
        pages=SimpleNamespace(page=lambda _template, _context, **values: values),
        parser=None,
        statistics=None,
        limits=None,
        rules=SimpleNamespace(limits=SimpleNamespace(id_chars_max=0)),
    )
    reader = SimpleNamespace(
        refresh_for_page=present,
        outages=lambda *_: [],
        limits=SimpleNamespace(kept_us=0),
        failure=None,
    )
    context = SimpleNamespace(permit=lambda _role: None, fragment=True, now_us=0)

    async def shown(page: StorePage) -> Any:
        return await page.show(context)  # type: ignore[arg-type]

    page = StorePage(site, reader, "PostgreSQL")  # type: ignore[arg-type]
    for _ in range(3):
        values = await shown(page)
        assert (values["facts"], values["outage"]) == ([("Version", "18.0")], None)
        assert [node.node for node in values["nodes"]] == ["a"]
    assert (service.reads, service.asked) == (1, 1)
    service.away = True
    page = StorePage(site, reader, "PostgreSQL")  # type: ignore[arg-type]
    for _ in range(3):
        values = await shown(page)
        assert (values["facts"], values["outage"]) == ([], "away")
    assert (service.reads, service.asked) == (2, 2)
