"""The compose files: nothing in them is unknown, and the cluster's nodes, run as processes, work together."""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import ComposeSpecification, PyCompose

from tests.deploy.files import DEPLOY, image_command, image_variables, only, unknown_settings
from tests.support.cases import each
from tests.support.cluster import ended, until
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.nats import NatsServer
from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess
from tocsin.settings import load_settings
from tocsin.web.http.hosts import Proxies

FOLDER = DEPLOY / "compose"
NAMES = ("compose.yaml", "compose.cluster.yaml", "compose.cassandra.yaml", "compose.demo.yaml")
FILES = [FOLDER / name for name in NAMES]
CLUSTER, DEMO = FILES[1], FILES[3]
NATS_TOKEN = "n" * 64


def text_of(path: Path) -> str:
    """The file where no variable is set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", path.read_text(encoding="utf-8"))


def parsed(path: Path) -> dict[str, Any]:
    """The file's content, with anchors and merges resolved and without extensions (`x-…`)."""
    content = yaml.safe_load(text_of(path))
    return {name: value for name, value in content.items() if not name.startswith("x-")}


def differences(given: Any, kept: Any, place: str = "") -> list[str]:
    """Places in a document that a reader did not keep."""
    if isinstance(given, dict):
        if not isinstance(kept, dict):
            return [place]
        return [
            found
            for name, value in given.items()
            for found in (
                differences(value, kept[name], f"{place}.{name}") if name in kept else [f"{place}.{name}".lstrip(".")]
            )
        ]
    return []


@each("path", FILES)
def test_the_file_has_only_keys_that_compose_knows(path: Path):
    content = parsed(path)
    PyCompose.from_yaml(yaml.safe_dump(content))
    kept = ComposeSpecification.model_validate(content).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert differences(content, kept) == []


def test_an_unknown_key_would_be_found():
    content = parsed(FILES[0])
    content["services"]["tocsin"]["read_onyl"] = True
    kept = ComposeSpecification.model_validate(content).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert differences(content, kept) == ["services.tocsin.read_onyl"]


@each("path", FILES)
def test_references_resolve(path: Path):
    content = parsed(path)
    for service in content["services"].values():
        assert set(service.get("secrets", [])) <= set(content.get("secrets", {}))
        assert {config["source"] for config in service.get("configs", [])} <= set(content.get("configs", {}))
        assert set(service.get("depends_on", [])) <= set(content["services"])
        for mounted in service.get("volumes", []):
            source = mounted.partition(":")[0]
            assert (FOLDER / source).exists() if source.startswith(".") else source in content["volumes"]
        for value in service.get("environment", {}).values():
            if (found := re.match(r"/run/secrets/(.+)", str(value))) is not None:
                assert found[1] in service["secrets"]
        assert unknown_settings(set(service.get("environment", {}))) == set()
        image, _, tag = service["image"].partition("@")[0].rpartition(":")
        assert image and re.search(r"\d+\.\d+", tag), "an exact tag"


@each("path", FILES)
def test_logs_are_bounded(path: Path):
    for service in parsed(path)["services"].values():
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}


def test_cassandras_schema_is_made_before_tocsin_starts():
    services = parsed(FILES[2])["services"]
    assert services["schema"]["command"] == ["migrate"]
    assert services["schema"]["environment"]["TOCSIN_STORE"] == services["tocsin"]["environment"]["TOCSIN_STORE"]
    assert services["tocsin"]["depends_on"] == {"schema": {"condition": "service_completed_successfully"}}


def test_every_container_with_tocsin_is_confined_and_may_drain():
    nodes = [service for path in FILES for service in parsed(path)["services"].values() if "tocsin" in service["image"]]
    assert len(nodes) == 9
    for node in nodes:
        assert node["read_only"] and node["cap_drop"] == ["ALL"]
        assert node["stop_grace_period"] == "90s"
        assert all(port.startswith("127.0.0.1:") for port in node.get("ports", []))


def test_the_proxy_and_prometheus_know_the_nodes(tmp_path: Path):
    nodes = [name for name, service in parsed(CLUSTER)["services"].items() if "tocsin" in service["image"]]
    addresses = [f"{name}:{image_variables()['TOCSIN_PORT']}" for name in nodes]
    prometheus = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    assert prometheus["scrape_configs"][0]["static_configs"][0]["targets"] == addresses
    (line,) = re.findall(r"reverse_proxy (.*) \{", (FOLDER / "Caddyfile").read_text())
    assert line.split() == addresses


def test_the_nodes_learn_the_clients_address_from_the_proxy_which_alone_reaches_them(monkeypatch: pytest.MonkeyPatch):
    for name, service in parsed(CLUSTER)["services"].items():
        if "tocsin" in service["image"]:
            monkeypatch.setenv("TOCSIN_TRUSTED_PROXIES", service["environment"].get("TOCSIN_TRUSTED_PROXIES", ""))
            proxies = Proxies(load_settings().trusted_proxies)
            # Of the networks that Docker gives by itself.
            for address in ("172.18.0.6", "192.168.16.6"):
                assert proxies.address((address, 5), b"203.0.113.9") == "203.0.113.9", name
            assert "ports" not in service


def test_prometheus_accepts_its_configuration(tmp_path: Path):
    promtool = shutil.which("promtool")
    if promtool is None:
        lacking("promtool", "Debian's package prometheus has it")
    text = (FOLDER / "prometheus.yml").read_text()
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/secrets", str(tmp_path)))
    (tmp_path / "prometheus_key").write_text("k" * 40)
    shutil.copytree(DEPLOY / "prometheus", tmp_path / "rules")
    command = [promtool, "check", "config", str(tmp_path / "prometheus.yml")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


async def test_the_demo_shows_a_timer_that_fires(tmp_path: Path):
    """Its containers as processes, each with its own command and environment, addresses and paths aside."""
    demo = parsed(DEMO)
    services, key = demo["services"], tmp_path / "admin_key"
    key.write_text(demo["configs"]["admin_key"]["content"])
    # As Compose mounts it.
    key.chmod(0o444)
    program = (sys.executable, "-u", "-m", "tocsin")
    echo = [{"0.0.0.0": "127.0.0.1", "9000": "0"}.get(word, word) for word in services["receiver"]["command"]]
    receiver = await asyncio.create_subprocess_exec(
        *program, *echo, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert receiver.stdout is not None and receiver.stderr is not None
        port = re.search(r"http://127\.0\.0\.1:(\d+)", (await receiver.stderr.readline()).decode())
        assert port is not None
        here = {"/admin_key": str(key), "receiver:9000": f"127.0.0.1:{port[1]}"}

        def placed(text: str) -> str:
            for there, place in here.items():
                text = text.replace(there, place)
            return text

        def environment(name: str) -> dict[str, str]:
            return {variable: placed(value) for variable, value in services[name]["environment"].items()}

        image = {name: value for name, value in image_variables().items() if name != "PATH"}
        local = {"TOCSIN_HOST": "127.0.0.1", "TOCSIN_CLUSTER_PORT": "0"}
        server = ServerProcess(tmp_path / "data", env=image | environment("tocsin") | local)
        await server.start()
        async with ended(server):
            here["http://tocsin:8080"] = server.url
            words = [placed(word) for word in services["timer"]["command"]]
            code, _, error = await command(*words, env=environment("timer"))
            assert code == 0, error
            async with asyncio.timeout(PATIENCE_S):
                line = (await receiver.stdout.readline()).decode()
            assert "default/first" in line and '{"hello":"world"}' in line
    finally:
        receiver.terminate()
        await receiver.wait()


class Nodes:
    """The cluster's nodes as processes: each with the image's command and the environment of its container, addresses and
    files aside."""

    def __init__(self, folder: Path, store: str, broker: str) -> None:
        self._services = parsed(CLUSTER)["services"]
        self.key = "k" * 40
        self._secrets = folder / "secrets"
        self._secrets.mkdir(mode=0o700)
        broker = broker.replace("nats://", f"nats://{NATS_TOKEN}@")
        contents = {"admin_key": self.key, "cluster_secret": "c" * 40, "store": store, "broker": broker}
        for name, content in contents.items():
            (self._secrets / name).write_text(content + "\n")
            (self._secrets / name).chmod(0o600)
        self.names = {name for name, service in self._services.items() if "tocsin" in service["image"]}
        self.servers = [self._node(folder, name) for name in sorted(self.names)]

    def _node(self, folder: Path, name: str) -> ServerProcess:
        environment = image_variables() | {
            key: str(value) for key, value in self._services[name]["environment"].items()
        }
        environment = {
            key: value.replace("/run/secrets", str(self._secrets))
            for key, value in environment.items()
            if key != "PATH"
        }
        here = {"TOCSIN_HOST": "127.0.0.1", "TOCSIN_ADVERTISE": "127.0.0.1"}
        # No proxy watches them.
        here |= {"TOCSIN_CLUSTER_LEAVE_DELAY": "100ms"}
        # Its receiver is on this machine.
        here |= {"TOCSIN_CLUSTER_PORT": "0", "TOCSIN_EGRESS_ALLOW_PRIVATE": "true"}
        return ServerProcess(folder / name, env=environment | here, command=image_command()[1])


async def test_the_clusters_nodes_work_together(tmp_path: Path, shared_postgresql: PostgresServer):
    config = tmp_path / "nats_config"
    config.write_text(f'authorization {{ token: "{NATS_TOKEN}" }}\n')
    nats = NatsServer(flags=nats_flags(config))
    try:
        nats.start()
        nodes = Nodes(tmp_path, await shared_postgresql.create_database(), nats.url)
        async with ended(*nodes.servers):
            # At once, as compose starts them, on a database without tables and keys.
            await asyncio.gather(*(server.start() for server in nodes.servers))
            await check_cluster(nodes)
            ends = await asyncio.gather(*(server.stop() for server in nodes.servers))
            assert ends == [0, 0, 0], [server.log()[-4000:] for server in nodes.servers]
    finally:
        nats.remove()


def nats_flags(config: Path) -> list[str]:
    """What the file starts NATS with, on another port and in another folder."""
    here = {"/run/secrets/nats_config": str(config), "/data": "{folder}/js", "0.0.0.0": "127.0.0.1", "4222": "{port}"}
    return [here.get(flag, flag) for flag in parsed(CLUSTER)["services"]["nats"]["command"]]


async def check_cluster(nodes: Nodes) -> None:
    """A timer that any node accepts fires, a service call goes over NATS, and Prometheus and the health check get answers."""
    arrived: set[str] = set()
    all_arrived = asyncio.Event()

    def answer(body: dict[str, Any], _: dict[str, str]) -> tuple[int, bytes]:
        arrived.add(body.get("timerId", "call"))
        if len(arrived - {"call"}) == 20:
            all_arrived.set()
        return 200, b""

    client = Client(nodes.servers[0].address, {"authorization": f"Bearer {nodes.key}"})

    async def share() -> bool:
        _, view = await client.get("/api/v1/cluster")
        return {shard["owner"] for shard in view["shards"]} == nodes.names

    await until(share)
    async with Receiver(answer) as receiver:
        for number in range(20):
            body = {"namespace": "default", "id": f"t{number}", "delay": "0s", "callbackUrl": receiver.url}
            assert (await client.post("/api/v1/timers/create", body))[0] == 200
        await all_arrived.wait()
        await check_call(client, receiver.url)
    client.close()
    for server in nodes.servers:
        assert scraped(server.port, nodes.key) == 200
        assert health(server.port) == 0
    assert health(1) != 0


async def check_call(client: Client, url: str) -> None:
    """A service call, whose messages go over NATS, succeeds."""
    calls = "/api/v1/tenants/01975b2e-7c00-7000-8000-000000000001/service-calls"
    spec = {"method": "POST", "url": url, "headers": {}, "body": {"n": 1}}
    status, submitted = await client.post(calls, {"name": "over NATS", "requestSpec": spec})
    assert status == 202, submitted

    async def succeeded() -> bool:
        return bool((await client.get(f"{calls}/{submitted['serviceCallId']}"))[1]["status"] == "Succeeded")

    await until(succeeded)


def scraped(port: int, key: str) -> int:
    """The status of a node's answer to Prometheus, which asks by the container's name."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics", headers={"host": "node-1:8080", "authorization": f"Bearer {key}"})
    status = connection.getresponse().status
    connection.close()
    return status


def health(port: int) -> int:
    """The exit code of the image's health check."""
    script = only("HEALTHCHECK").partition("CMD ")[2]
    assert "healthcheck.py" in script
    command = [sys.executable, "-I", "-S", str(DEPLOY / "docker" / "healthcheck.py")]
    environment = {"PATH": os.environ["PATH"], "TOCSIN_PORT": str(port)}
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode
