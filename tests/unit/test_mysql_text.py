"""Literals in statements, statements in packets, URLs, and the translation of errors."""

from __future__ import annotations

import os

import pytest
import trustme
from asyncmy import errors
from tests.support.cases import each

from tocsin.model.errors import (
    ConfigError,
    DefiniteFailure,
    OutcomeUnknown,
    StoreCorrupted,
    StoreFull,
    StoreUnavailable,
)
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.errors import is_refused_commit, is_undone, is_unusable, translate_error
from tocsin.stores.mysql.store import MysqlStore
from tocsin.stores.mysql.text import bytes_literal, inserts, instant, packets, place_range, text

U1, U2 = bytes(15) + b"\x01", bytes(15) + b"\x02"


@each(
    "value, written",
    [("plain", b"'plain'"), ("it's", b"'it\\'s'"), ("\\'", b"'\\\\\\''"), ("", b"''"), ("ü", "'ü'".encode())],
)
def test_quotes_and_backslashes_are_escaped(value, written):
    assert text(value) == written
    assert bytes_literal(value.encode()) == b"_binary" + written


def test_invalid_texts_and_instants_are_refused():
    with pytest.raises(UnicodeError):
        text("\ud800")
    with pytest.raises(DefiniteFailure):
        instant(2**63)


def test_range_conditions_between_positions():
    assert place_range((5, U1), (5, U2)).startswith(b"timer_execute_at = 5 AND timer_uuid BETWEEN")
    assert b"BETWEEN 6" not in place_range((5, U1), (6, U2))
    assert b"timer_execute_at BETWEEN 6 AND 8" in place_range((5, U1), (9, U2))


def test_rows_and_statements_are_grouped_up_to_the_packet_size():
    rows = [b"(%d)" % i for i in range(10, 30)]
    cut = list(inserts(b"I ", rows, b" T", 19))
    assert cut[0] == b"I (10),(11),(12) T"
    assert all(len(statement) <= 19 for statement in cut)
    assert b",".join(statement[2:-2] for statement in cut) == b",".join(rows)
    assert list(inserts(b"I ", [], b" T", 19)) == []
    with pytest.raises(DefiniteFailure, match="max_allowed_packet"):
        list(inserts(b"I ", [b"x" * 20], b" T", 19))
    grouped = list(packets(cut, 45))
    assert [statement for packet in grouped for statement in packet] == cut
    assert all(len(b"; ".join(packet)) <= 45 for packet in grouped)
    assert len(grouped[0]) == 2


def error(code: int) -> errors.MySQLError:
    return errors.OperationalError(code, "the server failed")


@each(
    "failure, store_error",
    [
        (error(1213), DefiniteFailure),
        (error(9007), DefiniteFailure),
        (error(1969), DefiniteFailure),
        (error(1406), DefiniteFailure),
        (UnicodeError("bad"), DefiniteFailure),
        (error(1205), StoreUnavailable),
        (error(1290), StoreUnavailable),
        (error(1114), StoreFull),
        (error(2013), StoreUnavailable),
        (errors.InternalError("Packet sequence number wrong"), StoreUnavailable),
        (ConnectionResetError(), StoreUnavailable),
        (TimeoutError(), StoreUnavailable),
        (error(1146), StoreCorrupted),
    ],
)
def test_errors_are_translated(failure, store_error):
    assert type(translate_error(failure, "mysql://h/d", in_doubt=False)) is store_error
    # The outcome of a COMMIT without an answer is unknown, whatever the error.
    assert type(translate_error(failure, "mysql://h/d", in_doubt=True)) is OutcomeUnknown


def test_sessions_usable_after_an_error():
    assert not is_unusable(error(1213))
    assert not is_unusable(error(1205))
    assert not is_unusable(UnicodeError("bad"))
    for failure in (error(2013), error(1053), error(1290), error(1927), TimeoutError(), OSError()):
        assert is_unusable(failure)


def test_commit_errors_that_certainly_had_no_effect():
    assert is_undone(error(1213))
    assert not is_undone(error(1205))
    assert is_refused_commit(error(1213))
    assert is_refused_commit(error(1290))
    for failure in (error(1180), error(1317), error(1969), error(2013), TimeoutError()):
        assert not is_refused_commit(failure)


async def test_missing_authentication_package_is_a_config_error(monkeypatch):
    async def refuse(**_):
        raise RuntimeError("'cryptography' package is required")

    monkeypatch.setattr("asyncmy.connection.connect", refuse)
    with pytest.raises(ConfigError, match="ssl-mode=REQUIRED"):
        await MysqlStore("mysql://u:secret@h/d").open(4)


class Refusing:
    """A server that answers every COMMIT with an error."""

    _stream_broken = False

    class _result:
        rows = None
        affected_rows = 0
        has_next = False

    def __init__(self, code: int) -> None:
        self.code = code
        self.sent: list[bytes] = []

    async def query(self, sql: bytes) -> int:
        self.sent.append(sql)
        if sql == b"COMMIT":
            raise error(self.code)
        return 0

    def get_server_info(self) -> str:
        return "8.0.36"


async def test_session_with_an_unknown_outcome_is_not_used_again():
    raw = Refusing(1180)
    connection = Connection(raw, 60)
    with pytest.raises(errors.MySQLError):
        await connection.transaction(lambda: connection.run(b"BEGIN"), 3)
    assert (connection.in_doubt, connection.is_closed()) == (True, True)
    assert raw.sent == [b"BEGIN", b"COMMIT"]


async def test_rolled_back_commit_is_retried_up_to_the_limit():
    raw = Refusing(1213)
    connection = Connection(raw, 60)
    with pytest.raises(errors.MySQLError):
        await connection.transaction(lambda: connection.run(b"BEGIN"), 2)
    assert (connection.in_doubt, connection.is_closed()) == (False, False)
    assert raw.sent == [b"BEGIN", b"COMMIT", b"ROLLBACK"] * 3


class TestUrls:
    def test_url_parts(self):
        settings = MysqlStore("mysql://us%40er:p%2Fw%C3%BC@[::1]:3307/my-db?socket=/run/s")._server
        arguments = settings.arguments(database=True)
        assert (arguments["user"], arguments["password"]) == ("us@er", "p/wü".encode())
        assert (arguments["host"], arguments["port"], arguments["unix_socket"]) == ("::1", 3307, "/run/s")
        assert (arguments["database"], arguments["ssl"]) == ("my-db", None)
        assert settings.safe_url == "mysql://[::1]:3307/my-db"
        assert settings.arguments(database=False)["database"] is None

    def test_tls_settings(self):
        settings = MysqlStore("mysql://u@h/d?ssl-mode=required")._server
        context = settings.ssl_context()
        assert context is not None
        assert not context.check_hostname
        verified = MysqlStore("mysql://u@h/d?ssl-mode=VERIFY_IDENTITY")._server.ssl_context()
        assert verified is not None
        assert verified.check_hostname

    def test_ca_file_is_read_again_only_after_it_changed(self, tmp_path):
        file = tmp_path / "ca.pem"
        settings = []
        for instant_ns in (1, 2):
            trustme.CA().cert_pem.write_to_path(str(file))
            os.utime(file, ns=(instant_ns, instant_ns))
            settings.append(MysqlStore(f"mysql://u@h/d?ssl-ca={file}")._server.ssl_context())
            assert settings[-1] is MysqlStore(f"mysql://u@h/other?ssl-ca={file}")._server.ssl_context()
        old, new = [context.get_ca_certs() for context in settings]
        assert len(old) == len(new) == 1
        assert old != new

    @each(
        "url, message",
        [
            ("mysql://u:secret@h", "has no valid database name"),
            ("mysql://u:secret@h/a`b", "has no valid database name"),
            ("mysql://u:secret@h/d?charset=latin1", "unknown parameter charset"),
            ("mysql://u:secret@h/d?ssl-mode=maybe", "ssl-mode"),
            ("mysql://u:secret@h/d?ssl-ca=/nowhere", "No such file"),
            ("mysql://u:secret@h:port/d", "[Pp]ort"),
        ],
    )
    def test_invalid_urls_are_refused_without_the_password(self, url, message):
        with pytest.raises(ConfigError, match=message) as refused:
            MysqlStore(url)
        assert "secret" not in str(refused.value)
