"""Which errors are database errors, and which of them mean a lost connection."""

from __future__ import annotations

import asyncpg
import pytest
from tocsin.stores.service_calls.errors import DATABASE_ERRORS, postgresql_lost, translate_postgresql_error

from tocsin.model.errors import OutcomeUnknown, StoreUnavailable

#: How asyncpg reports a lost connection.
LOST = (
    asyncpg.ConnectionDoesNotExistError("gone"),
    asyncpg.AdminShutdownError("terminating connection"),
    asyncpg.InterfaceError("connection is closed"),
    asyncpg.InternalClientError("got result for unknown protocol state 0"),
    ConnectionResetError("reset"),
    TimeoutError(),
)


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
def test_a_lost_connection_is_a_database_error(error: Exception) -> None:
    assert postgresql_lost(error)
    assert isinstance(error, DATABASE_ERRORS)
    assert isinstance(translate_postgresql_error(error, "db"), StoreUnavailable)
    assert isinstance(translate_postgresql_error(error, "db", in_commit=True), OutcomeUnknown)


def test_a_value_that_the_driver_cannot_encode_is_not_a_database_error() -> None:
    error = asyncpg.exceptions.DataError("invalid input")
    assert not postgresql_lost(error)
    assert translate_postgresql_error(error, "db") is error
