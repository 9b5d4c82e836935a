"""Tenants: each submits a call under its id until it is accepted, and may delete it, or retry it when it has failed."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from tocsin.model.errors import ServiceCallNotFailed, ServiceCallNotFound, ServiceCallNotScheduled
from tocsin.model.instants import format_instant
from tocsin.service_calls.api.validation import PolicySent, Submission

from .credentials import NAMES
from .flows import FLOWS

if TYPE_CHECKING:
    from .world import World

#: Longer than a command may wait for its reply.
_PATIENCE_S = 12.0
_SECOND = 1_000_000


class Client:
    """One call."""

    def __init__(self, world: World, number: int, rng: random.Random) -> None:
        self.number = number
        self.tenant_id = world.tenants[number % len(world.tenants)]
        self.call_id = world.new_id()
        self.due_at: int | None = None
        #: The attempts that its policy allows, and the pause before the second; None without a policy.
        self.policy: PolicySent | None = None
        self.accepted = False
        #: True once the deletion was acknowledged, None while its outcome is unknown.
        self.deleted: bool | None = False
        #: When the deletion was acknowledged, in microseconds.
        self.deleted_at = 0
        #: Retries that were asked for and may have been made, and those that were acknowledged.
        self.retries_asked = self.retries = 0
        self._world = world
        self._rng = rng
        self._retries = world.rng("retries", number)
        #: The flow whose slots it needs.
        self.flow_key = world.rng("flow", number).choice((None, None, None, *FLOWS)) if world.flows else None
        #: The credential that its requests name.
        self.credential = world.rng("credential", number).choice((None, *NAMES)) if world.credentials else None
        self._submissions = 0

    async def run(self) -> None:
        """From the submission to the end of the call."""
        world, rng = self._world, self._rng
        await asyncio.sleep(rng.uniform(0, world.submitting_s))
        if rng.random() < 0.6:
            self.due_at = world.now_us() + int(rng.choice((0.2, 10, 90)) * rng.random() * _SECOND)
        if rng.random() < 0.5:
            attempts, seconds = rng.randint(1, 4), rng.choice((1, 5, 40))
            self.policy = PolicySent(attempts, None, f"{seconds}s", 2.0, "60s")
        host = rng.choice(world.hosts)
        sent = Submission(
            f"call {self.number}", "POST", f"http://{host}/{self.number}", {}, None,
            None if self.due_at is None else format_instant(self.due_at), (), self.call_id, None, None, self.policy,
            flow_key=self.flow_key, credential=self.credential,
        )  # fmt: skip
        while not self.accepted:
            # Whichever of them is accepted, all executions of the call are in its trace.
            self._submissions += 1
            traced = sent._replace(traceparent=f"00-{self.number + 1:032x}-{self._submissions:016x}-01")
            self.accepted = await self._try("submit", traced)
        world.log("accepted", self.number)
        if (self.due_at is not None and rng.random() < 0.15) or (self.policy is not None and rng.random() < 0.3):
            await asyncio.sleep(rng.choice((1, 20, 60)) * rng.random())
            self.deleted = None
            if await self._try("delete", None):
                self.deleted, self.deleted_at = True, world.now_us()
                world.log("deleted", self.number)
        elif self._retries.random() < 0.5:
            await self._retry()

    async def _retry(self) -> None:
        """Retries the call, mostly once it has failed."""
        world, rng = self._world, self._retries
        for _ in range(rng.choice((2, 60))):
            await asyncio.sleep(rng.uniform(0, 4))
            if world.status_of(self.call_id) == "Failed":
                break
        for _ in range(rng.choice((1, 3))):
            self.retries_asked += 1
            if await self._try("retry", None):
                self.retries += 1
                world.log("retried", self.number)
                break

    async def _try(self, action: str, sent: Submission | None) -> bool:
        process = self._world.process
        if process.modules is None:
            await asyncio.sleep(0.5)
            return False
        calls = process.modules.calls
        asking = process.inside(
            calls.retry(self.tenant_id, self.call_id, "")
            if action == "retry"
            else calls.delete(self.tenant_id, self.call_id, "")
            if sent is None
            else calls.submit(self.tenant_id, sent, f"request-{self.number}")
        )
        await asyncio.wait({asking}, timeout=_PATIENCE_S)
        if not asking.done():
            return False
        error = asking.exception()
        if error is None:
            return True
        if isinstance(error, ServiceCallNotFailed):
            self.retries_asked -= 1
        elif sent is None and isinstance(error, ServiceCallNotScheduled):
            self.deleted = False
        elif sent is not None and self.deleted is False and isinstance(error, ServiceCallNotFound):
            self._world.broken("LOST", f"call {self.number}")
        await asyncio.sleep(0.3)
        return False
