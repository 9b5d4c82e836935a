"""A wrong password is not awaited like a server that is away. These are the stores whose test servers ask for none; tests of
the others are in `tests/integration/stores`."""

from __future__ import annotations

import pytest

from tocsin.model.errors import ConfigError, StoreUnavailable, StoreUnreachable


def test_of_cassandra() -> None:
    cluster = pytest.importorskip("cassandra.cluster")
    from cassandra import AuthenticationFailed

    from tocsin.stores.cassandra.errors import refused_start

    wrong = cluster.NoHostAvailable("no host", {"a:9042": AuthenticationFailed("Bad credentials")})
    assert type(refused_start(wrong, "cassandra://a")) is ConfigError
    away = cluster.NoHostAvailable("no host", {"a:9042": ConnectionRefusedError("refused")})
    assert type(refused_start(away, "cassandra://a")) is StoreUnreachable


def test_of_mongodb() -> None:
    errors = pytest.importorskip("pymongo.errors")
    from tocsin.stores.mongodb.errors import translate_error

    wrong = errors.OperationFailure("Authentication failed.", 18, {"codeName": "AuthenticationFailed"})
    assert type(translate_error(wrong, "mongodb://a", in_doubt=False)) is StoreUnavailable
    away = errors.ServerSelectionTimeoutError("connection refused")
    assert type(translate_error(away, "mongodb://a", in_doubt=False)) is StoreUnreachable
