"""URLs of NATS servers."""

from __future__ import annotations

import pytest
from tests.support.cases import each

from tocsin.messaging.nats.connection import NatsAddress, parse_nats_address
from tocsin.model.errors import ConfigError


@each(
    "url, address",
    [
        ("nats://localhost", NatsAddress(("nats://localhost:4222",))),
        ("nats://localhost:4333/", NatsAddress(("nats://localhost:4333",))),
        ("tls://[::1]:1", NatsAddress(("tls://[::1]:1",))),
        ("nats://token@h", NatsAddress(("nats://h:4222",), token="token")),
        ("nats://me:s%40cret@h", NatsAddress(("nats://h:4222",), user="me", password="s@cret")),
        ("nats://me:x@a:1,nats://b, nats://c:3", NatsAddress(("nats://a:1", "nats://b:4222", "nats://c:3"), "me", "x")),
    ],
)
def test_valid_addresses_are_parsed(url: str, address: NatsAddress) -> None:
    assert parse_nats_address(url) == address


@each(
    "url",
    [
        "",
        "localhost:4222",
        "http://secret@h",
        "nats://",
        "nats://secret@h:99999",
        "nats://secret@h/x",
        "nats://h?secret=1",
    ],
)
def test_invalid_addresses_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="nats://host:4222") as error:
        parse_nats_address(url)
    assert "secret" not in str(error.value)


def test_secrets_do_not_show() -> None:
    address = parse_nats_address("nats://me:hunter2@h,nats://i")
    assert str(address) == "nats://h:4222,nats://i:4222"
    assert "hunter2" not in f"{address!r}"
