"""Protection against server-side request forgery: addresses, spellings and exceptions."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each

from tocsin.http_client.egress import EgressPolicy, kind_refused
from tocsin.model.errors import ConfigError

PUBLIC = EgressPolicy()

REFUSED = {
    "a loopback": ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"],
    "a private": [
        "10.0.0.1",
        "10.255.255.255",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "fc00::1",
        "fd12:3456::1",
        "fec0::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::1",
    ],
    "a link-local": ["169.254.0.1", "169.254.170.2", "fe80::1", "febf::1"],
    "a metadata": [
        "169.254.169.254",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
    ],
    "a shared (carrier-grade NAT)": ["100.64.0.1", "100.127.255.255"],
    "an unspecified": ["0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0"],
    "a multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "a documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "a benchmarking": ["198.18.0.1", "198.19.255.255"],
    "a reserved": [
        "192.0.0.1",
        "192.88.99.1",
        "240.0.0.1",
        "255.255.255.255",
        "64:ff9b:1::1",
        "100::1",
        "2001:2::1",
        "2001:20::1",
        "4000::1",
        "5f00::1",
        # Teredo, with harmless addresses inside.
        "2001:0:808:808:0:ffff:f7f7:f7f7",
    ],
}
ALLOWED = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "198.17.255.255",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450:4001:81b::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]


@each("kind, ip", [(kind, ip) for kind, ips in REFUSED.items() for ip in ips])
def test_refused_addresses(kind: str, ip: str) -> None:
    assert kind_refused(ipaddress.ip_address(ip)) == kind
    assert PUBLIC.refusal(ip, "innocent.example", 443)
    assert EgressPolicy(allow_private=True).refusal(ip, "innocent.example", 443) is None


@each("ip", ALLOWED)
def test_public_addresses(ip: str) -> None:
    assert PUBLIC.refusal(ip, "hooks.example", 443) is None


@given(st.ip_addresses())
def test_never_more_lenient_than_the_standard_library(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    carries = isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address in NAT64)
    if kind_refused(address) is None and not carries:
        assert address.is_global


NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@each(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f000001",
        "0x7f.1",
        "0X7F.0.0.1",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "127。0。0。1",
        "１２７.0.0.1",
        "0",
        "0.0.0.0",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "localhost",
        "LocalHost",
        "localhost.",
        "app.localhost",
        "app.localhost.",
        "ｌｏｃａｌｈｏｓｔ",
    ],
)
def test_urls_of_private_addresses_are_refused(host: str) -> None:
    for url in (f"http://{host}/", f"https://{host}:8443/x?y#z", f"HTTP://{host}"):
        reason = PUBLIC.check_url(url)
        assert reason is not None
        # Nobody is advised to allow a metadata service.
        assert ("egress.allow" in reason) == ("a metadata" not in reason)
        assert EgressPolicy(allow_private=True).check_url(url) is None


@each(
    "url, reason",
    [
        ("", "not an http or https URL"),
        ("hooks.example/x", "not an http or https URL"),
        ("//hooks.example/x", "not an http or https URL"),
        ("ftp://hooks.example/", "not an http or https URL"),
        ("file:///etc/passwd", "not an http or https URL"),
        ("gopher://hooks.example/", "not an http or https URL"),
        ("javascript:alert(1)", "not an http or https URL"),
        ("http:/hooks.example/", "not an http or https URL"),
        ("http://", "no host"),
        ("http:///x", "no host"),
        ("http://:80/", "no host"),
        ("http://?x", "no host"),
        ("http://user@hooks.example/", "credentials"),
        ("http://user:secret@hooks.example/", "credentials"),
        ("http://hooks.example:0/", "port"),
        ("http://hooks.example:65536/", "port"),
        ("http://hooks.example:999999/", "port"),
        ("http://hooks.example:x/", "port"),
        ("http://hooks.example:８0/", "port"),
        ("http://hooks.example:-1/", "port"),
        ("http://hooks.example:80:80/", "port"),
        ("http://hooks.example/a b", "space"),
        ("http://hooks.example/\r\nx: y", "control"),
        ("http://hooks.example\t/", "control"),
        ("http://hooks.example\\@127.0.0.1/", "backslash"),
        ("http://hooks.example/\x00", "control"),
        ("http://127%2e0.0.1/", "not a host name"),
        ("http://a..b/", "not a host name"),
        ("http://.example/", "not a host name"),
        ("http://" + "a" * 64 + ".example/", "not a host name"),
        ("http://" + "a." * 127 + "example/", "at most 254"),
        ("http://a,b/", "not a host name"),
        ("http://999.1.1.1/", "not a host name or an IPv4"),
        ("http://1.2.3.4.5/", "not a host name or an IPv4"),
        ("http://4294967296/", "not a host name or an IPv4"),
        ("http://0x/", "not a host name or an IPv4"),
        ("http://[::1/", "an invalid host or port"),
        ("http://[]/", "not an IPv6"),
        ("http://[127.0.0.1]/", "not an IPv6"),
        ("http://[fe80::1%25eth0]/", "IPv6"),
        ("http://[::1]x/", "an invalid host or port"),
        ("http://hooks.example/\ud800", "surrogate"),
        ("http://hooks.example/" + "a" * 2_048, "characters"),
    ],
)
def test_urls_that_can_t_be_called(url: str, reason: str) -> None:
    for policy in (PUBLIC, EgressPolicy(allow_private=True)):
        found = policy.check_url(url)
        assert found is not None
        assert reason in found


@each(
    "url",
    [
        "http://hooks.example",
        "https://hooks.example/a?b=c#d",
        "https://hooks.example:8443/",
        "http://hooks.example:/",
        "http://8.8.8.8/",
        "http://[2606:4700::1111]:8080/",
        "http://under_score.example/",
        "http://bücher.example/straße?q=ü",
        "http://notlocalhost/",
        "http://localhost.example/",
        "http://hooks.example/@:80",
    ],
)
def test_urls_that_can_be_called(url: str) -> None:
    assert PUBLIC.check_url(url) is None


@each(
    "entry, ip, host, port, permitted",
    [
        ("10.1.0.0/16", "10.1.2.3", "a", 80, True),
        ("10.1.0.0/16", "10.2.2.3", "a", 80, False),
        ("10.1.2.3/16", "10.1.9.9", "a", 80, True),
        ("10.1.0.0/16", "::ffff:10.1.2.3", "a", 80, True),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1", 80, True),
        ("127.0.0.1", "127.0.0.2", "127.0.0.2", 80, False),
        ("127.0.0.1:9000", "127.0.0.1", "127.0.0.1", 9000, True),
        ("127.0.0.1:9000", "127.0.0.1", "127.0.0.1", 9001, False),
        ("::1", "::1", "::1", 80, True),
        ("[::1]:9000", "::1", "::1", 9000, True),
        ("[::1]:9000", "::1", "::1", 80, False),
        ("fd00::/8", "fd12::1", "a", 80, True),
        ("hooks.internal", "10.0.0.1", "hooks.internal", 80, True),
        ("Hooks.Internal.", "10.0.0.1", "hooks.internal", 80, True),
        ("hooks.internal", "10.0.0.1", "hooks.internal.", 80, True),
        ("hooks.internal", "10.0.0.1", "evil.hooks.internal", 80, False),
        ("hooks.internal", "10.0.0.1", "hooks.internal.evil", 80, False),
        ("hooks.internal:8080", "10.0.0.1", "hooks.internal", 8080, True),
        ("hooks.internal:8080", "10.0.0.1", "hooks.internal", 80, False),
    ],
)
def test_allowed_exceptions(entry: str, ip: str, host: str, port: int, permitted: bool) -> None:
    assert (EgressPolicy(allow=[entry]).refusal(ip, host, port) is None) is permitted


def test_localhost_is_permitted_if_one_of_its_addresses_is() -> None:
    assert EgressPolicy(allow=["127.0.0.0/8"]).check_url("http://localhost:9000/") is None
    assert EgressPolicy(allow=["localhost"]).check_url("http://localhost:9000/") is None
    assert EgressPolicy(allow=["localhost:9000"]).check_url("http://localhost:9001/") is not None


@each("entry", ["", "a b", "http://hooks.internal", "10.0.0.0/33", "hooks:99999", "a@b", "*"])
def test_bad_entries(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"egress\.allow"):
        EgressPolicy(allow=[entry])


@given(st.text(max_size=60))
def test_any_text_is_accepted_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"http://h.example/{text}", f"http://h.example:{text}/"):
        reason = PUBLIC.check_url(url)
        assert reason is None or reason
