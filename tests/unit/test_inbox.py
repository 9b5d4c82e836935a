"""The inbox's statements are those of the outboxes, and its verdicts those of their drains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import each

from tocsin.inbox.options import TABLE
from tocsin.inbox.reading import is_final
from tocsin.model.errors import (
    CollectionFull,
    InvalidInput,
    NamespaceNotFound,
    PayloadTooLarge,
    QuotaExceeded,
    TimerExists,
    TocsinError,
    Unavailable,
)
from tocsin.sql.pool import ServerOptions
from tocsin.stores.inbox.mysql import MysqlInboxTable
from tocsin.stores.inbox.postgresql import PostgresInboxTable
from tocsin.stores.inbox.table import SqlInboxTable

CASES = json.loads((Path(__file__).parents[2] / "sdks/vectors/outbox.json").read_text())["cases"]
TABLES: dict[str, SqlInboxTable] = {
    "postgresql": PostgresInboxTable("postgresql://db/shop", TABLE, ServerOptions()),
    "mysql": MysqlInboxTable("mysql://db/shop", TABLE, ServerOptions()),
}
#: What the engine refuses creates with.
REFUSALS: dict[str, TocsinError] = {
    error.code: error
    for error in (
        InvalidInput(),
        NamespaceNotFound(""),
        TimerExists(""),
        CollectionFull(""),
        PayloadTooLarge(),
        QuotaExceeded(""),
    )
} | {"NOT_READY": Unavailable("")}


def cases(statement: str) -> list[Any]:
    found = [case for case in CASES if case["with"].get("statement") == statement]
    return [pytest.param(case, id=case["with"]["dialect"]) for case in found if case["with"]["dialect"] in TABLES]


@pytest.mark.parametrize("case", cases("table"))
def test_the_table_is_that_of_the_outboxes(case: Any) -> None:
    assert TABLES[case["with"]["dialect"]].definition() == case["expect"]["text"]


@each("case", [case for case in CASES if case["with"].get("refused", {}).get("code") in REFUSALS])
def test_refusals_are_final_as_for_the_outboxes(case: Any) -> None:
    error = REFUSALS[case["with"]["refused"]["code"]]
    assert is_final(error) is case["expect"]["dead"]
