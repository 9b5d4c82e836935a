"""The end of every run: all nodes stop at about the same time, with attempts in flight. What was called has ended, and is not
called again; what was not called is still stored."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tocsin.model.errors import Unavailable
from tocsin.model.ids import timer_uuid
from tocsin.model.timer import Timer

from .receiver import payload_of

if TYPE_CHECKING:
    from .node import Node
    from .world import World

SECOND = 1_000_000
#: How long answers to attempts in flight take, those after the first at most: less than `drain_timeout` allows.
_SLOW_S, _SLOW_S_MAX = 3.0, 3.5
_TIMEOUT_US = 4 * SECOND
#: Of those that fall due meanwhile, so that each may still begin.
_SHORT_TIMEOUT_US = SECOND
#: Of a notification, which waits in memory where it could outlast the node.
_ROW_BYTES_MAX = 1_000
_HOST = "slow"


class Departure:
    """All nodes of a healed world that has drained stop, some of them at the same instant."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng("departure")
        self._tokens: dict[int, bytes] = {}

    async def run(self) -> None:
        """Returns when all nodes have ended."""
        world, rng = self._world, self._rng
        slow = await self._create("slow", 0, _SLOW_S)
        for number in range(rng.randint(0, 2)):
            await self._create(f"slow{number}", 0, rng.uniform(0.2, _SLOW_S_MAX))
        await asyncio.sleep(rng.uniform(0.1, 1.0))
        begun = slow in world.ledger.fires
        meanwhile = [
            await self._create(f"due{number}", rng.uniform(0.3, 1.0), 0.01, _SHORT_TIMEOUT_US) for number in range(3)
        ]
        together = rng.random() < 0.3
        world.record("all nodes stop", "together" if together else "one after another")
        await asyncio.gather(*(self._stop(node, 0.0 if together else rng.uniform(0, 3.0)) for node in world.nodes))
        stored = set(world.stored_tokens().values())
        for token, uuid in self._tokens.items():
            self._check(token, uuid, stored=token in stored)
        if together and begun and self._roomy():
            for token in meanwhile:
                if token not in world.ledger.fires:
                    world.broken("NOT FIRED", f"token {token}, due while all nodes waited for an attempt in flight")

    async def _create(self, name: str, due_in_s: float, answers_in_s: float, timeout_us: int = _TIMEOUT_US) -> int:
        world = self._world
        due = world.true_us() + int(due_in_s * SECOND)
        namespace, uuid = world.namespaces[0], timer_uuid(world.namespaces[0], name)
        token = world.ledger.token(due, world.true_us())
        world.ledger.states(uuid).add(token)
        world.answers_in_s[token] = answers_in_s
        self._tokens[token] = uuid
        timer = Timer(
            namespace, name, due, f"http://{_HOST}/", due, due, payload=payload_of(token),
            timeout_us=timeout_us,
        )  # fmt: skip
        while True:
            service = self._rng.choice(world.nodes).service
            try:
                assert service is not None
                await service.create(timer)
            except Unavailable as error:
                world.record("not created", token, type(error).__name__)
                await asyncio.sleep(0.1)
            else:
                world.ledger.acknowledged(uuid, token, world.true_us())
                return token

    async def _stop(self, node: Node, after_s: float) -> None:
        await asyncio.sleep(after_s)
        await node.depart()

    def _check(self, token: int, uuid: bytes, *, stored: bool) -> None:
        calls = self._world.ledger.fires.get(token, 0)
        what = f"{uuid.hex()[:6]} token {token}, {calls} calls"
        if calls > 1:
            self._world.broken("REPEATED", f"{what}, though every node stopped in order")
        elif calls and stored:
            self._world.broken("NOT WRITTEN", f"{what}, would be called again after the next start")
        elif not calls and not stored:
            self._world.broken("LOST", what)

    def _roomy(self) -> bool:
        """Whether no timer waits for the attempts of others, nor outside of memory because they are all of its shard's."""
        limits, shards = self._world.limits, self._world.total_shards
        rows = min(limits.window_timers_max // shards, limits.window_bytes_max // shards // _ROW_BYTES_MAX)
        return min(limits.callbacks_in_flight_max, limits.destination_in_flight_max, rows) >= 4
