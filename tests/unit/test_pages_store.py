"""What the page of the store shows of the facts that a database reports."""

from __future__ import annotations

from tocsin.ports.store import StoreFacts
from tocsin.web.pages.admin.store import facts_of, size


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
