"""What docs/how-to/dynamodb.md states of the lives of timers is what a server takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench import dynamodb_units

from tests.support.dynamodb import DynamoServer

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "dynamodb.md"


def _lives() -> dict[str, list[tuple[float, float]]]:
    """Of each life on the page, units and dollars: removed by Tocsin, one at a time and in shared commits; removed by
    DynamoDB."""
    page = PAGE.read_text()
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    cells = {row[0]: [re.fullmatch(r"(\d+), \$([0-9.]+)", cell) for cell in row[1:]] for row in rows if len(row) == 5}
    return {
        name: [(float(each[1]), float(each[2])) for each in found if each]
        for name, found in cells.items()
        if all(found)
    }


def test_prices_are_those_of_the_units() -> None:
    lives = _lives()
    assert len(lives) == 5
    for units, dollars in (each for cells in lives.values() for each in cells):
        assert abs(units * dynamodb_units.WRITE_PRICE - dollars) < 0.0051


@pytest.mark.parametrize("time_to_live", [False, True], ids=["removed-by-tocsin", "removed-by-dynamodb"])
async def test_a_server_takes_the_units_that_the_page_states(shared_dynamodb: DynamoServer, time_to_live: bool) -> None:
    # How many occurrences share what depends on the speed of commits.
    measured = await dynamodb_units.measure_lives(
        shared_dynamodb, time_to_live=time_to_live, but=dynamodb_units.OCCURRENCE
    )
    stated = {name: cells[2:] if time_to_live else cells[:2] for name, cells in _lives().items()}
    del stated[dynamodb_units.OCCURRENCE]
    assert {name: list(dynamodb_units.totals(units)) for name, units in measured.items()} == {
        name: [units for units, _ in cells] for name, cells in stated.items()
    }
