"""The hosts of a PostgreSQL URL."""

from __future__ import annotations

import pytest

from tocsin.stores.postgresql.hosts import urls_of_hosts


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p@one/db", ["postgresql://u:p@one/db"]),
        ("postgresql:///db?host=/run/postgresql", ["postgresql:///db?host=/run/postgresql"]),
        (
            "postgresql://u:a,b@one:1,[::1]:2,three/db?sslmode=require",
            [f"postgresql://u:a,b@{host}/db?sslmode=require" for host in ("one:1", "[::1]:2", "three")],
        ),
        (
            "postgresql://u@/db?host=one,two&port=1,2",
            ["postgresql://u@/db?host=one&port=1", "postgresql://u@/db?host=two&port=2"],
        ),
        (
            "postgresql://u@/db?host=one,two&port=1",
            ["postgresql://u@/db?host=one&port=1", "postgresql://u@/db?host=two&port=1"],
        ),
        ("postgresql://u@/db?host=one,two", ["postgresql://u@/db?host=one", "postgresql://u@/db?host=two"]),
        # The driver names the fault.
        ("postgresql://u@/db?host=one,two&port=1,2,3", ["postgresql://u@/db?host=one,two&port=1,2,3"]),
    ],
)
def test_a_url_of_several_hosts_becomes_one_for_each(url: str, expected: list[str]) -> None:
    assert urls_of_hosts(url) == expected
