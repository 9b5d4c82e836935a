"""Shown text contains no control or invisible characters."""

from __future__ import annotations

import json

from tests.support.cases import each

from tocsin.model.setting_values import redacted
from tocsin.model.visible import visible, visible_name


def test_invisible_characters_are_shown_as_code_points() -> None:
    assert visible("a\x1b[2Jb\u202ec\x9b\U000e0041") == "a\\u001b[2Jb\\u202ec\\u009b\\udb40\\udc41"
    assert visible("a\nb\r", keep="\n") == "a\nb\\u000d"
    assert visible("é 日本 😀") == "é 日本 😀"
    document = json.dumps("\x9b\u202e\U000e0041", ensure_ascii=False)
    assert json.loads(visible(document)) == json.loads(document)


def test_joiners_in_names_are_kept() -> None:
    assert visible_name("می\u200cخواهم\u202e") == "می\u200cخواهم\\u202e"


@each(
    "address, shown",
    [
        ("nats://s3cr3t@broker:4222", "nats://…@broker:4222"),
        ("nats://a:s3cr3t@one:4222, tls://s3cr3t@two:4222", "nats://a:…@one:4222,tls://…@two:4222"),
        ("nats://broker:4222?token=s3cr3t&x=1", "nats://broker:4222?token=…&x=1"),
        ("postgresql://user@host/db?sslpassword=s3cr3t", "postgresql://user@host/db?sslpassword=…"),
        ("postgresql://user:s3/c@r3t:x@host/db", "postgresql://user:…@host/db"),
        ("mysql://user:s3cr3t@host/db?ssl-key-password=s3cr3t", "mysql://user:…@host/db?ssl-key-password=…"),
        ("sqlite:////data/a@b/tocsin.db", "sqlite:////data/a@b/tocsin.db"),
        ("postgresql://host/db", "postgresql://host/db"),
    ],
)
def test_addresses_are_shown_without_secrets(address: str, shown: str) -> None:
    assert redacted(address) == shown
