"""The drill of secrets: `python -m tests.drills.secrets PART`, or `make drill-secrets ARGS=PART`. It has three parts.

`rotation`: the key of encrypted secrets is replaced on a running server, or on two nodes on PostgreSQL, while clients create
timers at a rate and these fire: no create fails, and each timer fires with its secret.

`outage`: a token endpoint is down for two minutes: no attempt is counted, other timers are on time, and everything that
waited is sent afterwards.

`planted`: secrets are put wherever there is room for one, and a day passes; then all files are searched for them, in clear
and in the common encodings.

If something is wrong, the exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import trustme

from tests.integration.server.test_agent_flow import finished, new_id, submit
from tests.integration.server.test_credential_tokens import TokenEndpoint, oauth2
from tests.integration.server.test_sealed_secrets import Plants, Recorder, plant, stored
from tests.integration.server.test_secret_rotation import FIRST, FORMER, SECOND
from tests.support.calls import Api
from tests.support.cluster import AnyNode, balanced, ended, node, now_us, until
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.nats import NatsServer
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess
from tocsin.model.instants import format_instant, parse_instant

C = TypeVar("C")

#: Clients that create at once, and how long before it is due a timer is created.
_CLIENTS, _AHEAD_S = 32, 3
#: Timers that are encrypted again, and how many of them fire in the end.
_STOCK, _FIRED = 3_000, 300
#: A second, in the drill of an outage: timers without a credential, and timers and service calls with one.
_HEALTHY_RATE, _WAITING_RATE, _CALLS_RATE = 100, 20, 1
#: Before and after the outage; and how long a token is valid.
_AROUND_S, _LIFETIME_S = 15, 20
_BALANCE_S = 300.0


class Fired(Receiver):
    """Keeps with which identities each timer came, and its lag in milliseconds."""

    def __init__(self) -> None:
        super().__init__(lambda body, headers: (200, b""))
        self.found: dict[str, Counter[str]] = {}
        self.attempts: Counter[int] = Counter()
        self.lags: dict[str, tuple[int, float]] = {}

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        arrived, name = now_us(), headers["x-timer"]
        self.found.setdefault(name, Counter())[headers.get("authorization", "")] += 1
        body = json.loads(raw) if raw else {}
        if "executeAt" in body:
            due = parse_instant(body["executeAt"])
            self.attempts[body["attempt"]] += 1
            self.lags.setdefault(name, (due, (arrived - due) / 1e3))
        return 200, b""

    def lags_of(self, prefix: str, first: int = 0, last: int = 2**62) -> str:
        """The lags of timers that were due in between."""
        lags = sorted(ms for name, (due, ms) in self.lags.items() if name.startswith(prefix) and first <= due < last)
        if not lags:
            return "no timers"
        p50, p99 = (lags[len(lags) * share // 100] for share in (50, 99))
        return f"{len(lags)} timers, lag p50 {p50:.1f} ms, p99 {p99:.1f} ms, most {lags[-1]:.0f} ms"


async def paced(rate: float, seconds: float, clients: Iterable[C], work: Callable[[C, int], Awaitable[None]]) -> None:
    """Has clients do work at a rate. What is late is made up for."""
    loop = asyncio.get_running_loop()
    begun, numbers = loop.time(), iter(range(round(rate * seconds)))

    async def works(client: C) -> None:
        for number in numbers:
            await asyncio.sleep(max(begun + number / rate - loop.time(), 0))
            await work(client, number)

    await asyncio.gather(*(works(client) for client in clients))


# ---------------------------------------------------------------------- rotation


class Rotation:
    """The drill on one server, or on several nodes of one store."""

    def __init__(self, servers: list[ServerProcess], gone: set[ServerProcess], receiver: Fired) -> None:
        self.servers, self.receiver = servers, receiver
        self.clients = [AnyNode(servers, seed) for seed in range(_CLIENTS)]
        for client in self.clients:
            client.gone = gone
        self.repeated = self.created = 0
        self.wrong: list[str] = []

    async def post(self, client: AnyNode, path: str, body: dict[str, Any]) -> Any:
        """The answer to a request, which is repeated while no node can answer it."""
        while True:
            try:
                status, answer = await client.post(f"/api/v1/{path}", body)
            except (OSError, EOFError, TimeoutError):
                status, answer = 503, None
            if status != 503:
                break
            self.repeated += 1
            await asyncio.sleep(0.05)
        if status != 200:
            self.wrong.append(f"{path}: {status} {answer}")
        return answer

    def timer(self, name: str, delay_s: int) -> dict[str, Any]:
        """A timer with a secret in its URL, and one in its headers."""
        return {
            "namespace": "default", "id": name, "callbackUrl": f"{self.receiver.url}?token=u{name}",
            "executeAt": format_instant(now_us() + delay_s * 1_000_000), "idempotencyKey": name,
            "headers": {"Authorization": f"Bearer s{name}", "x-timer": name},
        }  # fmt: skip

    async def run(self, seconds: float, rate: float) -> list[str]:
        """What is wrong."""
        for first in range(0, _STOCK, 500):
            timers = [self.timer(f"stock{number}", 86_400) for number in range(first, first + 500)]
            await self.post(self.clients[0], "timers/batch/create", {"timers": timers})
        begun, rotated = asyncio.get_running_loop().time(), asyncio.create_task(self.rotate())

        async def create(client: AnyNode, number: int) -> None:
            await self.post(client, "timers/create", self.timer(f"t{number}", 1 + number % _AHEAD_S))
            self.created += 1

        await paced(rate, seconds, self.clients, create)
        took_s = asyncio.get_running_loop().time() - begun
        done = rotated.done()
        await rotated
        later = {f"stock{number}" for number in range(_FIRED)}
        for number in range(_FIRED):
            changed = {"namespace": "default", "timerId": f"stock{number}", "delay": "0s"}
            await self.post(self.clients[0], "timers/update", changed)
        names = later | {f"t{number}" for number in range(self.created)}

        async def have_fired() -> bool:
            await asyncio.sleep(0.1)
            return names <= self.receiver.found.keys()

        await until(have_fired, _BALANCE_S)
        found = self.receiver.found
        wrong = [f"{name} came with {found[name]}" for name in names if set(found[name]) != {f"Bearer s{name}"}]
        twice = sum(counts.total() > 1 for counts in found.values())
        print(
            f"{self.created} creates in {took_s:.1f} s, {self.created / took_s:.0f} a second; {self.repeated} repeated"
        )
        print(f"{self.receiver.lags_of('t')}; {len(names)} fired, {twice} more than once")
        if not done:
            print("the rotation ended after the creates")
        return [*self.wrong, *wrong]

    async def rotate(self) -> None:
        """Replaces the key while timers are created and fire."""
        begun = asyncio.get_running_loop().time()

        def report(what: str) -> None:
            print(f"{asyncio.get_running_loop().time() - begun:.1f} s: {what}", flush=True)

        await asyncio.sleep(3)
        if len(self.servers) > 1:
            await self.restarted(f"{FIRST}\n{SECOND}\n")
            report("every node knows the new key")
        await self.restarted(f"{SECOND}\n{FIRST}\n")
        report("the new key encrypts")
        left = await self.left()
        while left:
            # Of timers that were about to fire. The next pass is 5 minutes away, or at the next start.
            report(f"{left} timers wait with the former key")
            await asyncio.sleep(_AHEAD_S)
            await self.restarted(f"{SECOND}\n{FIRST}\n")
            left = await self.left()
        report("nothing waits with the former key")
        code, _, err = await self.keys("--forget", FORMER)
        assert code == 0, err
        await self.restarted(f"{SECOND}\n")
        report("the former key is gone")

    async def restarted(self, keys: str) -> None:
        for server in self.servers:
            keys_of(server).write_text(keys)
            assert await server.stop() == 0
            await server.start()

    def keys(self, *flags: str) -> Awaitable[tuple[int, str, str]]:
        server = self.servers[0]
        env = {name: server.env[name] for name in ("TOCSIN_SECRETS_KEY_FILE",)}
        store = server.flags[:2] if server.flags[0] == "--store" else ()
        return command("keys", "secrets", "--data-dir", str(server.data_dir), *store, *flags, env=env)

    async def left(self) -> int:
        """How many wait with the former key, once a pass since the start has counted them."""
        while True:
            code, out, err = await self.keys("--json")
            assert code == 0, err
            found: dict[str, Any] = next((row for row in json.loads(out) if row["keyId"] == FORMER), {})
            if (waiting := found.get("waiting")) is not None:
                return int(waiting)
            await asyncio.sleep(0.2)


def keys_of(server: ServerProcess) -> Path:
    """The file with a server's keys."""
    return Path(server.env["TOCSIN_SECRETS_KEY_FILE"])


def with_keys(server: ServerProcess, keys: str) -> ServerProcess:
    """The server with a file of keys beside its data folder."""
    server.env["TOCSIN_SECRETS_KEY_FILE"] = str(server.data_dir.with_suffix(".keys"))
    keys_of(server).write_text(keys)
    return server


async def rotation(kind: str, folder: Path, servers: ExitStack, seconds: float, rate: float) -> list[str]:
    """The key of encrypted secrets is replaced."""
    if kind == "postgresql":
        url = await database_of(servers).create_database()
        nodes = [node(folder, name, url, steady=True) for name in ("one", "two")]
    else:
        nodes = [ServerProcess(folder / "one", "--no-agent")]
    for each in nodes:
        with_keys(each, f"{FIRST}\n")
    gone: set[ServerProcess] = set()
    async with Fired() as receiver, ended(*nodes):
        for each in nodes:
            await each.start()
        async with balanced(nodes, gone):
            return await Rotation(nodes, gone, receiver).run(seconds, rate)


# ---------------------------------------------------------------------- outage


async def outage(kind: str, folder: Path, servers: ExitStack, seconds: float, rate: float) -> list[str]:
    """A token endpoint is down."""
    store = ("--store", await database_of(servers).create_database()) if kind == "postgresql" else ()
    server, tenant, calls = with_keys(ServerProcess(folder / "one", *store), f"{FIRST}\n"), new_id(), list[str]()
    whole_s = seconds + 2 * _AROUND_S
    async with Fired() as receiver, TokenEndpoint() as endpoint, ended(server):
        await server.start()
        api, client = Api(server), Client(server.address)
        endpoint.token, endpoint.lifetime_s = "a-token", _LIFETIME_S
        await api("credentials/put", **oauth2(endpoint.url))

        async def create(at: Client, name: str, **more: Any) -> None:
            body = {"namespace": "default", "id": name, "callbackUrl": receiver.url, "delay": "2s"}
            status, answer = await at.post("/api/v1/timers/create", {**body, "headers": {"x-timer": name}, **more})
            assert status == 200, answer

        async def healthy(at: Client, number: int) -> None:
            await create(at, f"healthy{number}")

        async def named(at: Client, number: int) -> None:
            await create(at, f"named{number}", credential="partner", retryPolicy={"maxAttempts": 1})

        async def call(at: Client, number: int) -> None:
            headers = {"x-timer": f"call{number}"}
            spec = {"method": "POST", "url": receiver.url, "headers": headers, "credential": "partner"}
            calls.append(await submit(at, tenant, receiver.url, requestSpec=spec))

        begun = now_us()
        clients = [Client(server.address) for _ in range(2 * _CLIENTS)]
        load = asyncio.gather(
            paced(_HEALTHY_RATE, whole_s, clients[:_CLIENTS], healthy),
            paced(_WAITING_RATE, whole_s, clients[_CLIENTS:], named),
            paced(_CALLS_RATE, whole_s, [client], call),
        )
        await asyncio.sleep(_AROUND_S)
        endpoint.token, down = "", now_us()
        await asyncio.sleep(seconds)
        names = {f"named{number}" for number in range(round(_WAITING_RATE * whole_s))}
        endpoint.token, back = "a-token", now_us()
        await load

        names |= {f"healthy{number}" for number in range(round(_HEALTHY_RATE * whole_s))}
        names |= {f"call{number}" for number in range(len(calls))}

        async def all_came() -> bool:
            await asyncio.sleep(0.1)
            return names <= receiver.found.keys()

        await until(all_came, _BALANCE_S)
        named_lags = [lag for name, lag in receiver.lags.items() if name.startswith("named")]
        sent_s = [(due + lag_ms * 1e3 - back) / 1e6 for due, lag_ms in named_lags if due < back]
        held = [each for each in sent_s if each > 0]
        print(f"{len(held)} timers waited, and were sent at most {max(held, default=0):.1f} s after the token was back")
        print(f"healthy before: {receiver.lags_of('healthy', begun, down)}")
        print(f"healthy during the outage: {receiver.lags_of('healthy', down, back)}")
        print(f"healthy after: {receiver.lags_of('healthy', back)}")
        ends = [await finished(client, tenant, each) for each in calls]
    retried = receiver.attempts.total() - receiver.attempts[1]
    wrong = [f"{retried} requests were not the first attempt"] if retried else []
    right = ("Succeeded", 1, 1)
    wrong += [f"call {each}" for each in ends if (each["status"], each["attempts"], len(each["executions"])) != right]
    needed = {"healthy": "", "named": "Bearer a-token", "call": "Bearer a-token"}
    for name, counts in receiver.found.items():
        if counts != Counter([needed[name.rstrip("0123456789")]]):
            wrong.append(f"{name} came with {counts}")
    print(f"{len(calls)} service calls; timers by number of attempt: {dict(receiver.attempts)}")
    return wrong


# ---------------------------------------------------------------------- planted


def forms(secret: bytes) -> Iterator[bytes]:
    """A secret in clear and in encodings, also within a longer text."""
    yield secret
    yield quote(secret, safe="").encode()
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    for encoding in ("utf-16-le", "utf-16-be"):
        yield secret.decode("latin-1").encode(encoding)
    for offset in range(3):
        begin, end = (offset * 8 + 5) // 6, (offset + len(secret)) * 8 // 6
        for encoded in (base64.b64encode, base64.urlsafe_b64encode):
            yield encoded(bytes(offset) + secret)[begin:end]


def found_in(data: bytes, plants: list[str]) -> list[str]:
    """What is found of the secrets. Those of `Plants.one` begin alike, so that this is searched for in their place."""
    secrets = {"plant-" if each.startswith("plant-") else each for each in plants}
    return [each for each in sorted(secrets) if any(form in data for form in set(forms(each.encode())))]


def searched(plants: list[str], *folders: Path) -> list[str]:
    """Searches all files, but for logs and keys; the findings."""
    size, wrong = 0, []
    contents = stored(*folders)
    for content in contents:
        size += len(content)
        wrong += [f"found {each!r} in a file" for each in found_in(content, plants)]
    print(f"searched {len(contents)} files of {size / 1e6:.1f} MB", flush=True)
    return wrong


async def put_credentials(api: Api, plants: Plants) -> None:
    """One of each type that has a secret."""
    issued = trustme.CA().issue_cert("tocsin.test")
    key = issued.private_key_pem.bytes().decode()
    plants.all.append(key.splitlines()[2])
    token_url = "http://127.0.0.1:9/token"
    oauth = {"type": "oauth2ClientCredentials", "tokenUrl": token_url, "clientId": "x", "clientSecret": plants.one()}
    certificate = "".join(each.bytes().decode() for each in issued.cert_chain_pems)
    for name, fields in (
        ("basic", {"type": "basic", "username": "x", "password": plants.one()}),
        ("bearer", {"type": "bearer", "token": plants.one()}),
        ("oauth", oauth),
        ("mtls", {"type": "mtls", "hosts": ["shop.example"], "certificate": certificate, "privateKey": key}),
    ):
        status, answer = await api("credentials/put", namespace="default", name=name, **fields)
        assert status == 200, answer


@asynccontextmanager
async def planted_on(server: ServerProcess, plants: Plants) -> AsyncIterator[tuple[Api, list[Recorder]]]:
    """A running server with secrets, and its receivers."""
    async with Recorder() as ok, Recorder(status=500) as bad, ended(server):
        await server.start()
        api = Api(server)
        await plant(api, Client(server.address), plants, ok.url, bad.url)
        await put_credentials(api, plants)
        await ok.count(9)
        yield api, [ok, bad]


async def planted(kind: str, folder: Path, servers: ExitStack, seconds: float, rate: float) -> list[str]:
    """Secrets are planted and searched for: on SQLite with a day that passes in a moment, on PostgreSQL with NATS."""
    plants, data = Plants(), folder / "data"
    if kind == "sqlite":
        server = ServerProcess(data, command="dev")
        async with planted_on(server, plants) as (api, receivers):
            for _ in range(24):
                status, answer = await api("dev/clock/advance", by="1h")
                assert status == 200, answer
            await receivers[0].count(9 + 24 + 32 + 4)
            code, _, err = await command("backup", str(folder / "kept"), "--data-dir", str(data))
            assert code == 0, err
            wrong = searched(plants.all, folder)
            await server.kill()
        wrong += searched(plants.all, folder)
    else:
        database, nats = database_of(servers), NatsServer()
        servers.callback(nats.remove)
        nats.init()
        nats.start()
        urls = [await database.create_database() for _ in range(2)]
        flags = ("--store", urls[0], "--agent-database", urls[1], "--broker", nats.url)
        server = with_keys(ServerProcess(data, *flags), f"{FIRST}\n")
        async with planted_on(server, plants) as (_, receivers):
            dumps = [subprocess_output(database.programs / "pg_dump", url) for url in urls]
            for each in await asyncio.gather(*dumps):
                assert len(each) > 10_000
                (folder / f"{new_id()}.sql").write_bytes(each)
            wrong = searched(plants.all, folder, nats.folder, database.folder)
            await server.kill()
        wrong += searched(plants.all, folder, nats.folder, database.folder)
    came = len(plants.found_in(repr(each).encode() for receiver in receivers for each in receiver.arrived))
    print(f"{len(plants.all)} secrets, of which {came} came to receivers")
    control = [each for each in plants.all if not all(found_in(b"x" + form, [each]) for form in forms(each.encode()))]
    return wrong + [f"the search does not find {each}" for each in control]


async def subprocess_output(*command: object) -> bytes:
    """What a program prints. Raises AssertionError if it fails."""
    process = await asyncio.create_subprocess_exec(*map(str, command), stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0, command
    return out


# ---------------------------------------------------------------------- which


def database_of(servers: ExitStack) -> PostgresServer:
    """A new PostgreSQL server."""
    database = PostgresServer(fsync=True)
    servers.callback(database.remove)
    database.init()
    database.start()
    return database


PARTS = {"rotation": (rotation, 60.0), "outage": (outage, 120.0), "planted": (planted, 0.0)}


def main() -> int:
    """Runs parts of the drill; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills.secrets", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all, if none is named")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), help="only this one")
    parser.add_argument("--seconds", type=float, help="how long timers are created, or the endpoint is down")
    parser.add_argument("--rate", type=float, default=500.0, help="creates a second during the rotation")
    given, failed = parser.parse_args(), False
    for part in given.parts or PARTS:
        drill, seconds = PARTS[part]
        for kind in (given.store,) if given.store else ("sqlite", "postgresql"):
            print(f"{part}, {kind}", flush=True)
            with ExitStack() as servers, tempfile.TemporaryDirectory(prefix="tocsin-drill-") as folder:
                wrong = asyncio.run(drill(kind, Path(folder), servers, given.seconds or seconds, given.rate))
            print("\n".join(["It is wrong:", *wrong[:20]] if wrong else ["It is right."]), flush=True)
            failed = failed or bool(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main())
