"""Once a change of a namespace at one node is acknowledged, every node applies it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.cluster import node, now_us, running, shared_by, until
from tests.support.http import Client, Receiver
from tocsin.model.instants import format_instant, parse_instant
from tocsin.model.secrets import sign
from tocsin.timers.engine.limits import EngineLimits

SECRET = "whsec_" + "c2VjcmV0LW9mLTMyLWJ5dGVzLXBhZGRlZC10by1pdCE="


def is_signed(headers: dict[str, str]) -> bool:
    expected = sign(SECRET, headers["webhook-id"], int(headers["webhook-timestamp"]), headers[":body"].encode())
    return headers.get("webhook-signature") == expected


async def test_timers_of_a_namespace_created_at_another_node_are_signed_from_the_first(
    tmp_path: Path, postgresql_url: str
) -> None:
    """A receiver that verifies signatures refuses an unsigned call permanently."""
    signed: dict[str, bool] = {}

    def verify(body: dict[str, object], headers: dict[str, str]) -> tuple[int, bytes]:
        signed[f"{body['namespace']} {body['timerId']}"] = is_signed(headers)
        return (200 if is_signed(headers) else 401), b""

    servers = [node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two", "three")]
    async with Receiver(verify) as receiver, running(*servers):
        await shared_by(servers, {"one", "two", "three"})
        clients = [Client(server.address) for server in servers]
        for round in range(3):
            name = f"space-{round}"
            status, made = await clients[round].post(
                "/api/v1/namespaces/create", {"name": name, "secret": SECRET, "numShards": 16}
            )
            assert status == 200, made
            timers = [
                {"namespace": name, "id": f"t{n}", "delay": "1ms", "callbackUrl": receiver.url} for n in range(40)
            ]
            status, answer = await clients[round].post("/api/v1/timers/batch/create", {"timers": timers})
            assert status == 200
            assert all("timer" in result for result in answer["results"])

        async def all_called() -> bool:
            return len(signed) == 120

        await until(all_called)
        assert [name for name, was_signed in signed.items() if not was_signed] == []
        for client in clients:
            client.close()


async def test_no_callback_starts_on_any_node_after_an_acknowledged_pause(tmp_path: Path, postgresql_url: str) -> None:
    fired: list[int] = []

    def answer(body: dict[str, object], _: dict[str, str]) -> tuple[int, bytes]:
        fired.append(parse_instant(str(body["firedAt"])))
        return 200, b""

    servers = [node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two", "three")]
    async with Receiver(answer) as receiver, running(*servers):
        await shared_by(servers, {"one", "two", "three"})
        client = Client(servers[0].address)
        began = now_us() + 500_000
        # Due from now until long after the pause, however long the machine takes to make it.
        timers = [
            {
                "namespace": "default", "id": f"t{number}", "executeAt": format_instant(began + number * 50_000),
                "callbackUrl": receiver.url,
            }
            for number in range(1_000)
        ]  # fmt: skip
        assert (await client.post("/api/v1/timers/batch/create", {"timers": timers}))[0] == 200

        async def some_called() -> bool:
            return len(fired) >= 20

        await until(some_called)
        status, answered = await client.post("/api/v1/namespaces/update", {"name": "default", "paused": True})
        acknowledged = now_us()
        assert (status, answered["paused"]) == (200, True)
        # Longer than a node may use what it knows of namespaces.
        await asyncio.sleep((EngineLimits().namespaces_lease_us + 500_000) / 1e6)
        assert [instant - acknowledged for instant in fired if instant > acknowledged] == []
        client.close()


@pytest.mark.slow
async def test_every_node_signs_with_both_secrets_during_the_grace_period(tmp_path: Path, postgresql_url: str) -> None:
    calls: list[tuple[int, dict[str, str]]] = []

    def record(body: dict[str, object], headers: dict[str, str]) -> tuple[int, bytes]:
        calls.append((parse_instant(str(body["firedAt"])), headers))
        return 200, b""

    servers = [node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two")]
    async with Receiver(record) as receiver, running(*servers):
        await shared_by(servers, {"one", "two"})
        clients = [Client(server.address) for server in servers]

        async def fire(secrets: dict[str, int], batches: int = 1) -> None:
            """Fires timers of both nodes; each call has exactly the signatures of the secrets before whose instant it was
            made, in their order."""
            calls.clear()
            for number in range(batches):
                timers = [
                    {"namespace": "space", "id": f"t{n}", "delay": "1ms", "callbackUrl": receiver.url}
                    for n in range(20)
                ]
                assert (await clients[number % 2].post("/api/v1/timers/batch/create", {"timers": timers}))[0] == 200
                await until(lambda wanted=20 * (number + 1): _true(len(calls) == wanted))
            for fired_at, headers in calls:
                message = headers["webhook-id"], int(headers["webhook-timestamp"]), headers[":body"].encode()
                wanted = [sign(secret, *message) for secret, before in secrets.items() if fired_at < before]
                assert headers["webhook-signature"].split(" ") == wanted

        ever = 2**63
        wanted = {"name": "space", "secret": SECRET, "numShards": 16}
        assert (await clients[0].post("/api/v1/namespaces/create", wanted))[0] == 200
        await fire({SECRET: ever})
        status, rotated = await clients[0].post("/api/v1/namespaces/rotateSecret", {"name": "space"})
        assert status == 200, rotated
        second, end = rotated["secret"], parse_instant(rotated["previousUntil"])
        assert abs(end - now_us() - 86_400_000_000) < 60_000_000
        await fire({second: ever, SECRET: end}, 2)

        status, problem = await clients[1].post("/api/v1/namespaces/rotateSecret", {"name": "space"})
        assert (status, problem["error"]) == (409, "ROTATION_PENDING")
        assert rotated["previousUntil"] in problem["detail"]
        forced = {"name": "space", "grace": "1s", "force": True}
        status, rotated = await clients[1].post("/api/v1/namespaces/rotateSecret", forced)
        assert status == 200
        third, end = rotated["secret"], parse_instant(rotated["previousUntil"])
        await fire({third: ever, second: end, SECRET: end}, 2)
        await until(lambda: _true(now_us() >= end))
        await fire({third: ever}, 2)
        _, listed = await clients[0].post("/api/v1/namespaces/list", {})
        shown = next(one for one in listed["namespaces"] if one["name"] == "space")
        assert (shown["signed"], "previousSecretUntil" in shown) == (True, False)
        for client in clients:
            client.close()


async def _true(what: bool) -> bool:
    return what
