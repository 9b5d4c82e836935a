"""Failed authentication: which addresses are refused, and what is logged."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs
from tests.support.cases import each

from tocsin.web.http import access as limits
from tocsin.web.http.access import AuthFailures
from tocsin.web.http.errors import TooManyFailures
from tocsin.web.http.hosts import Proxies, headers_by_name


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def refused(failures: AuthFailures, address: str, times: int) -> int:
    """How many of these failures were refused."""
    count = 0
    for _ in range(times):
        try:
            failures.failure(address, "unknown_key", "api")
        except TooManyFailures as error:
            assert 0 < error.retry_after_s <= limits._REFILL_S
            count += 1
    return count


def test_failures_are_limited_per_address_and_the_limit_recovers() -> None:
    clock = Clock()
    failures = AuthFailures(now_s=clock)
    assert refused(failures, "10.0.0.1", limits._BURST + 5) == 5
    assert refused(failures, "10.0.0.2", 1) == 0
    clock.now_s += 2 * limits._REFILL_S
    assert refused(failures, "10.0.0.1", 3) == 1
    # Who has a network has all of its addresses.
    assert refused(failures, "2001:db8::1", limits._BURST) == 0
    assert refused(failures, "2001:db8::2:1", 1) == 1
    assert refused(failures, "2001:db8:0:1::1", 1) == 0


def test_a_look_at_the_limit_counts_nothing() -> None:
    clock = Clock()
    failures = AuthFailures(now_s=clock)
    for _ in range(2 * limits._BURST):
        failures.check("10.0.0.1")
    assert refused(failures, "10.0.0.1", limits._BURST) == 0
    for _ in range(2):
        with pytest.raises(TooManyFailures):
            failures.check("10.0.0.1")
    failures.check("10.0.0.2")
    clock.now_s += limits._REFILL_S
    failures.check("10.0.0.1")
    assert refused(failures, "10.0.0.1", 2) == 1


def test_memory_and_log_lines_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_ADDRESSES_MAX", 50)
    clock, counted = Clock(), []
    failures = AuthFailures(counted.append, clock)
    with capture_logs() as lines:
        for number in range(1_000):
            failures.failure(f"10.0.{number // 250}.{number % 250}", "unknown_key", "api")
        clock.now_s += limits._LINES_WINDOW_S
        failures.failure("10.9.9.9", "malformed", "pages")
    assert len(failures._left) == 50
    assert len(counted) == 1_001
    assert len(lines) == limits._LINES_MAX + 1
    assert (lines[-1]["address"], lines[-1]["reason"], lines[-1]["suppressed"]) == ("10.9.9.9", "malformed", 990)


@each(
    "peer, forwarded, address",
    [
        ("10.0.0.9", b"198.51.100.7", "10.0.0.9"),
        ("127.0.0.1", None, "127.0.0.1"),
        ("127.0.0.1", b"198.51.100.7", "198.51.100.7"),
        ("127.0.0.1", b"203.0.113.1, 198.51.100.7, 10.1.2.3", "198.51.100.7"),
        ("127.0.0.1", b"198.51.100.7, made up", "127.0.0.1"),
        ("127.0.0.1", b"203.0.113.1, 198.51.100.7:49152, 10.1.2.3:443", "198.51.100.7"),
        ("127.0.0.1", b"[2001:db8::7]:49152", "2001:db8::7"),
        ("127.0.0.1", b"[2001:db8::7]", "2001:db8::7"),
    ],
)
def test_only_a_trusted_proxy_names_the_client(peer: str, forwarded: bytes | None, address: str) -> None:
    assert Proxies(["127.0.0.1", "10.1.0.0/16"]).address((peer, 5), forwarded) == address


@each(
    "peer, forwarded, secure",
    [
        ("10.0.0.9", b"https", False),
        ("127.0.0.1", None, False),
        ("127.0.0.1", b"http", False),
        ("127.0.0.1", b"https", True),
        ("127.0.0.1", b"HTTPS, http", True),
        ("127.0.0.1", b"http, https", False),
        ("10.1.2.3", b"httpsx", False),
    ],
)
def test_only_a_trusted_proxy_has_it_that_the_client_uses_https(
    peer: str, forwarded: bytes | None, secure: bool
) -> None:
    assert Proxies(["127.0.0.1", "10.1.0.0/16"]).secure((peer, 5), forwarded) == secure
    assert not Proxies().secure((peer, 5), forwarded)
    assert not Proxies(["0.0.0.0/0"]).secure(None, forwarded)


def test_lines_that_several_proxies_added_are_one_list() -> None:
    line = b"x-forwarded-for"
    sent = [(line, b"203.0.113.1"), (b"host", b"a"), (line, b"198.51.100.7"), (b"host", b"b"), (line, b"10.1.2.3")]
    headers = headers_by_name(sent)
    assert headers[b"host"] == b"b"
    assert Proxies(["127.0.0.1", "10.1.0.0/16"]).address(("127.0.0.1", 5), headers[line]) == "198.51.100.7"
