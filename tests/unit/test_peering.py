"""How a node is reached by other nodes, and when it must not be."""

from __future__ import annotations

import socket

import pytest
from tests.support.cases import each

from tocsin.cluster.handshake import ClusterSecrets
from tocsin.model.errors import ConfigError
from tocsin.server.peers import peering_of
from tocsin.settings import load_settings

STORE = "postgresql://x@127.0.0.1/x"
SECRET = "sixteen letters!"


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch):
    import os

    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)


def peering(worker: int = 0, **flags):
    return peering_of(load_settings({"store": STORE, **flags}), secrets=ClusterSecrets(SECRET), worker=worker)


def test_a_loopback_address_is_announced_as_it_is() -> None:
    met = peering()
    assert (met.host, met.secrets.current, met.announced(9070)) == ("127.0.0.1", SECRET, "127.0.0.1:9070")


def test_the_advertised_or_bound_address_is_announced() -> None:
    assert peering(host="10.0.0.5").announced(1) == "10.0.0.5:1"
    assert peering(host="::", advertise="[fd00::5]").announced(1) == "[fd00::5]:1"
    assert peering(host="0.0.0.0", advertise="a.internal:7").announced(1) == "a.internal:7"
    assert peering(worker=2, cluster_port=9070).port == 9072


def test_bound_to_every_address_the_one_towards_the_database_is_announced() -> None:
    own = _outward_address()
    if own is None:
        pytest.skip("this machine has no way out of itself")
    assert peering(host="0.0.0.0", store="postgresql://x@198.51.100.1/x").announced(1) == f"{own}:1"


@each("store", [STORE, "postgresql://x@nowhere.invalid/x", "postgresql:///x?host=/run/postgresql"])
def test_with_a_local_or_unknown_database_the_host_name_is_announced(store: str) -> None:
    assert peering(host="0.0.0.0", store=store).announced(1) == f"{socket.gethostname()}:1"


def _outward_address() -> str | None:
    """This machine's local address for packets to an unassigned address (RFC 5737)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


@each(
    "flags, reason",
    [
        ({"cluster_secret": "hunter2"}, "cluster.secret (--cluster-secret): '…' must have at least 16 characters"),
        ({"workers": 2}, "workers: a sqlite store belongs to one process"),
        ({"workers": 2, "store": "memory://"}, "workers: a memory store is within one process"),
        ({"workers": 2, "store": STORE, "advertise": "10.0.0.5:7"}, "advertise: each worker has its own port"),
        ({"workers": 2, "store": STORE, "audit_export_file": "-"}, "several workers would be mixed on standard output"),
        ({"advertise": "http://x"}, "'http://x' is not an address"),
        ({"advertise": "fd00::5"}, "'fd00::5' is not an address"),
        ({"advertise": "[:::]:1"}, "'[:::]:1' is not an address"),
        ({"advertise": "x:0"}, "'x:0' is not an address"),
        ({"advertise": "x:65536"}, "'x:65536' is not an address"),
        ({"advertise": "0.0.0.0:9070"}, "stands for every address of a machine"),
        ({"advertise_api": "10.0.0.5:8080"}, "'10.0.0.5:8080' is not the URL of an API"),
        ({"advertise_api": "http://u:p@10.0.0.5/"}, "is not the URL of an API"),
        ({"advertise_api": "https://a.internal/?x=1"}, "is not the URL of an API"),
        ({"advertise_api": "http://0.0.0.0:8080"}, "stands for every address of a machine"),
        ({"advertise": "[::]"}, "stands for every address of a machine"),
        ({"cluster_secret": "sixteen letters\udcff"}, "cluster.secret (--cluster-secret): '…' is not UTF-8 text"),
        ({"node_name": "a\0b"}, "has unprintable characters"),
        ({"node_name": "a\nb"}, "has unprintable characters"),
        ({"node_name": "n" * 256}, "is not a name of at most 255 characters"),
        (
            {"workers": 3, "store": STORE, "cluster_port": 65_534},
            "cluster.port: 3 workers need as many ports from 65534 on",
        ),
        ({"node_lease": "6s"}, "member_timeout: 5s must be longer than node_lease (6s)"),
        ({"node_lease": "5s"}, "member_timeout: 5s must be longer than node_lease (5s)"),
        ({"member_timeout": "1m"}, "member_timeout: 1m must be shorter than 1m, after which a node is forgotten"),
        (
            {"cluster_peer_timeout": "500ms"},
            "cluster.peer_timeout: 500ms must be longer than the keep-alive interval (500ms)",
        ),
        (
            {"payload_bytes_max": "32MiB"},
            "payload_bytes_max: 33554432 must be at most 33292287, what a message between",
        ),
    ],
)
def test_invalid_cluster_settings_are_refused(flags, reason) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(flags)
    assert reason in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_names_and_addresses_of_all_kinds_are_accepted() -> None:
    for name in ("node 1", "zürich-1", "節点", "a/b:c"):
        assert load_settings({"node_name": name}).node_name == name
    assert load_settings({"node_name": ""}).node_name is None
    for address in ("10.0.0.5", "a.internal:7", "[fd00::5]", "[::1]:65535", "under_score.local"):
        assert load_settings({"advertise": address, "cluster_secret": SECRET}).advertise == address
    assert load_settings({"workers": 3, "store": STORE, "cluster_port": 65_533}).cluster_port == 65_533
