"""The debounce drill: `python -m tests.drills.debounce`, or `make drill-debounce`.

Three nodes share a PostgreSQL database. Clients create timers of a fixed number of ids again and again, debounced, at a
steady rate; half of the ids collect their payloads. Meanwhile a node is killed. In the end no name of a firing had two
contents, each acknowledged payload was delivered, or a later one of its id where none are collected, and none later than its
longest delay allows, but for those of the killed node's shards, which may wait for another node to claim them. If one of
these is violated, the exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.drills.postgresql import on_a_new_server
from tests.drills.replay import p99
from tests.support.cluster import AnyNode, balanced, ended, node, now_us, shared_by, until, view
from tests.support.http import Receiver
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess
from tocsin.model.debounce import COLLECT_MAX
from tocsin.model.ids import namespace_hash, shard_of, timer_uuid

NAMES = ("one", "two", "three")
NAMESPACE, SHARDS = "search", 24
_SENDERS, _BATCH = 8, 25
#: Of the callback.
_TIMEOUT_S = 2
#: How late a call may arrive on a busy machine; and where its node was killed.
_LATE_S, _CLAIMED_S = 2.0, 10.0
_BALANCE_S = 120.0


@dataclass(frozen=True)
class Plan:
    """How many creates of how many ids, how many a second, and after which share of them a node is killed. `delay_s` is
    longer than it usually takes until the next create of an id, so that windows last until the longest delay. `in_time`:
    calls that come late are wrong, too, which a busy machine can't avoid."""

    creates: int = 100_000
    ids: int = 1_000
    rate: int = 2_000
    killed_at: float = 0.4
    delay_s: int = 2
    max_delay_s: int = 6
    in_time: bool = True


@dataclass
class Call:
    """A call of the receiver: when it came, under which name, with which payloads."""

    at: int
    name: str
    payloads: list[int]


@dataclass
class Account:
    """One id: when each payload's create was answered, and the calls."""

    acknowledged: dict[int, int] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)


def collects(number: int) -> bool:
    """Whether the id of this number collects its payloads."""
    return number % 2 == 0


def shard(number: int) -> int:
    """The shard of an id."""
    uuid = timer_uuid(NAMESPACE, f"d{number}")
    return shard_of(namespace_hash(NAMESPACE), uuid, SHARDS, SHARDS)


class Drill:
    """The drill on running nodes."""

    def __init__(self, servers: list[ServerProcess], gone: set[ServerProcess], plan: Plan) -> None:
        self.servers, self.gone, self.plan = servers, gone, plan
        self.accounts: dict[int, Account] = defaultdict(Account)
        self.full = self.repeated = self.answered = 0
        self.killed_at, self.lost = 0, frozenset[int]()
        self.receiver = Receiver(self._called)

    def _called(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        payload = body["payload"]
        call = Call(now_us(), headers["webhook-id"], payload if isinstance(payload, list) else [payload])
        self.accounts[int(body["timerId"][1:])].calls.append(call)
        return 200, b""

    def _any_node(self, seed: int) -> AnyNode:
        client = AnyNode(self.servers, seed)
        client.gone = self.gone
        return client

    async def run(self) -> list[str]:
        """What is wrong."""
        async with self.receiver:
            client = self._any_node(99)
            status, answer = await client.post("/api/v1/namespaces/create", {"name": NAMESPACE, "numShards": SHARDS})
            assert status == 200, answer
            begun = now_us()
            await asyncio.gather(self._kill(), *(self._send(number, begun) for number in range(_SENDERS)))
            seconds = (now_us() - begun) / 1e6

            async def nothing_is_pending() -> bool:
                try:
                    status, page = await client.post(
                        "/api/v1/timers/list", {"namespace": NAMESPACE, "status": "pending", "limit": 1}
                    )
                except (OSError, EOFError, TimeoutError):
                    return False
                return status == 200 and not page["timers"]

            await until(nothing_is_pending, _BALANCE_S)
            client.close()
            print(
                f"{self.answered} creates of {self.plan.ids} ids in {seconds:.1f} s ({self.answered / seconds:.0f} a "
                f"second), {self.repeated} requests repeated, {self.full} refused once as COLLECTION_FULL",
                flush=True,
            )
            return self._balance()

    async def _kill(self) -> None:
        while self.answered < self.plan.creates * self.plan.killed_at:  # noqa: ASYNC110 -- counts what senders do
            await asyncio.sleep(0.05)
        owned = (await view(self.servers[-1]))["shards"]
        self.lost = frozenset(each["shardId"] for each in owned if each["owner"] == NAMES[0])
        self.killed_at = now_us()
        await self.servers[0].kill()
        print(f"{NAMES[0]}, which owned {len(self.lost)} of {SHARDS} shards, killed at {self.answered}", flush=True)

    async def _send(self, sender: int, begun: int) -> None:
        """Sends this sender's share in batches, each create again until it is answered, and those of an id in order."""
        client, plan = self._any_node(sender), self.plan
        ids = itertools.cycle(range(sender, plan.ids, _SENDERS))
        waiting: dict[int, int] = {}
        sent, left = 0, plan.creates // _SENDERS
        numbers: dict[int, int] = defaultdict(int)
        while left or waiting:
            due = begun + sent * _SENDERS * 1_000_000 // plan.rate
            await asyncio.sleep(max(due - now_us(), 0) / 1e6)
            for number in itertools.islice(ids, min(_BATCH, plan.ids // _SENDERS, left)):
                if number not in waiting:
                    sent, left = sent + 1, left - 1
                    numbers[number] += 1
                    waiting[number] = numbers[number]
            await self._send_batch(client, waiting)
        client.close()

    async def _send_batch(self, client: AnyNode, waiting: dict[int, int]) -> None:
        """Sends what waits; what was done, waits no longer."""
        batch = list(waiting.items())
        try:
            status, answer = await client.post(
                "/api/v1/timers/batch/create", {"timers": [self._timer(*each) for each in batch]}
            )
        except (OSError, EOFError, TimeoutError):
            self.repeated += 1
            return
        if status != 200:
            assert status == 503, answer
            self.repeated += 1
            await asyncio.sleep(0.1)
            return
        at = now_us()
        for (number, payload), result in zip(batch, answer["results"], strict=True):
            if "error" not in result:
                self.accounts[number].acknowledged[payload] = at
                self.answered += 1
                del waiting[number]
                continue
            error = result["error"]
            assert error["status"] == 503 or error["error"] == "COLLECTION_FULL", error
            self.full += error["error"] == "COLLECTION_FULL"

    def _timer(self, number: int, payload: int) -> dict[str, Any]:
        timer = {
            "namespace": NAMESPACE, "id": f"d{number}", "callbackUrl": self.receiver.url, "payload": payload,
            "onConflict": "debounce", "delay": f"{self.plan.delay_s}s", "maxDelay": f"{self.plan.max_delay_s}s",
            "idempotencyKey": f"{number}/{payload}", "callbackTimeoutSeconds": _TIMEOUT_S,
        }  # fmt: skip
        return timer | ({"collect": COLLECT_MAX} if collects(number) else {})

    # ------------------------------------------------------------------ the balance

    def _balance(self) -> list[str]:
        """Prints what became of the creates; what is wrong with it."""
        wrong: list[str] = []
        late: dict[bool, list[float]] = {False: [], True: []}
        windows = again = twice = 0
        # The machine has halted: a node that lives has lost results, too.
        halted = any("dispatch paused" in server.log() for server in self.servers[1:])
        for number, account in sorted(self.accounts.items()):
            names: dict[str, list[int]] = {}
            for call in account.calls:
                again += call.name in names
                if call.name in names and shard(number) not in self.lost and not halted:
                    wrong.append(f"d{number}: {call.name} was called again, though its node lives")
                if names.setdefault(call.name, call.payloads) != call.payloads:
                    wrong.append(f"d{number}: {call.name} with {names[call.name]}, and with {call.payloads}")
            windows += len(names)
            delivered = [payload for payloads in names.values() for payload in payloads]
            twice += len(delivered) - len(set(delivered))
            wrong += self._late(number, account, late)
        healthy, lost = sorted(late[False]), sorted(late[True])
        print(
            f"{windows} windows fired: {again} calls made again under their name, {twice} payloads delivered under two\n"
            f"behind its longest delay: p99 {p99(healthy):.2f} s, at most {max(healthy, default=0):.2f} s; of the killed "
            f"node's shards at most {max(lost, default=0):.2f} s",
            flush=True,
        )
        return wrong[:20]

    def _late(self, number: int, account: Account, late: dict[bool, list[float]]) -> list[str]:
        """Notes by how much the first call that has each payload, or a later one, came after its longest delay; what is
        missing or too late."""
        wrong, all_of_them = [], collects(number)
        is_lost = shard(number) in self.lost
        allowed_s = (_CLAIMED_S if is_lost else _LATE_S) + all_of_them * _TIMEOUT_S
        first: dict[int, int] = {}
        for call in account.calls:
            for payload in call.payloads:
                first.setdefault(payload, call.at)
        highest: list[tuple[int, int]] = []
        for call in account.calls:
            if not highest or max(call.payloads) > highest[-1][0]:
                highest.append((max(call.payloads), call.at))
        for payload, at in account.acknowledged.items():
            came = (
                first.get(payload) if all_of_them else next((when for most, when in highest if most >= payload), None)
            )
            if came is None:
                wrong.append(f"d{number}: {payload} was acknowledged and never delivered")
                continue
            behind_s = (came - at) / 1e6 - self.plan.max_delay_s
            late[is_lost].append(behind_s)
            if behind_s > allowed_s and self.plan.in_time:
                wrong.append(f"d{number}: {payload} came {behind_s:.1f} s after its longest delay")
        return wrong


async def run(url: str, folder: Path, plan: Plan) -> list[str]:
    """The drill on a new database; what is wrong."""
    gone = set[ServerProcess]()
    servers = [node(folder, name, url, "--shards", str(SHARDS)) for name in NAMES]
    async with ended(*servers):
        for server in servers:
            await server.start()
        await shared_by(servers, set(NAMES))
        async with balanced(servers, gone):
            return await Drill(servers, gone, plan).run()


async def _on_a_server(database: PostgresServer, folder: Path, plan: Plan) -> list[str]:
    return await run(await database.create_database(), folder, plan)


def main() -> int:
    """Runs the drill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = Plan()
    parser.add_argument("--creates", type=int, default=usual.creates, help="debounced creates")
    parser.add_argument("--ids", type=int, default=usual.ids, help="ids of which they are")
    parser.add_argument("--rate", type=int, default=usual.rate, help="creates a second, at most")
    given = parser.parse_args()
    plan = Plan(given.creates, given.ids, given.rate)
    return on_a_new_server(lambda database, folder: _on_a_server(database, folder, plan))


if __name__ == "__main__":
    sys.exit(main())
