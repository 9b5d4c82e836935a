"""Two agents of one database on a NATS server: a former leader leaves everything to its successor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import msgspec
import nats as nats_py
import pytest
import pytest_asyncio
from nats.aio.client import Client

from tests.conformance.bus.base import LIMITS, TIMEOUT_US, Handling, Notes, check, message, number
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tocsin.messaging.limits import BusLimits
from tocsin.messaging.nats.bus import NatsBus
from tocsin.model.errors import StoreUnavailable
from tocsin.model.ids import Uuid7Source
from tocsin.ports.bus import BrokerConnection, BusUnavailable, Envelope, RequestUnanswered

_prefixes = Uuid7Source(lambda: 1_700_000_000_000_000)
#: Only what is checked for each message keeps a former leader from serving.
UNCHECKED = replace(LIMITS, nats_check_interval_us=3_600_000_000)


class Agent:
    """One agent's bus, with a subscription and a responder. `leads` is whether it holds the database's lock."""

    def __init__(
        self, server: NatsServer, prefix: str, epoch: int, limits: BusLimits = LIMITS, *, subscribes: bool = True
    ) -> None:
        self.notes = Notes()
        self.handling = Handling(self.notes)
        self.leads = True
        self.asked: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.bus = NatsBus(
            server.url,
            limits,
            check,
            self.notes.observe,
            prefix=prefix,
            owner="database",
            epoch=epoch,
            leads=lambda: self.leads,
        )
        if subscribes:
            self.bus.subscribe("one", ["Happened"], self.handling)
        self.bus.respond("answering", ["Do"], self._answer)

    async def _answer(self, commands: Sequence[Envelope]) -> Sequence[Envelope]:
        self.asked += [number(command) for command in commands]
        self.notes.change()
        await self.gate.wait()
        if not self.leads:
            raise StoreUnavailable("the lock was lost")
        return commands

    @property
    def connections(self) -> list[bool]:
        """Whether it was connected, each time that this changed."""
        return [event.connected for event in self.notes.events if isinstance(event, BrokerConnection)]

    @property
    def handled(self) -> list[int]:
        return [number(envelope) for envelope in self.handling.handled]


@pytest.fixture
def prefix() -> str:
    """A subject prefix for this test only on the shared server."""
    return "t" + _prefixes().replace("-", "")[-24:]


@pytest_asyncio.fixture
async def raw(shared_nats: NatsServer) -> AsyncIterator[Client]:
    """Another client of the server."""
    client = await nats_py.connect(shared_nats.url)
    yield client
    await client.close()


async def consumers(client: Client, prefix: str) -> dict[str, str]:
    """The epochs of the stream's consumers, by name."""
    answer = await client.request(f"$JS.API.CONSUMER.LIST.TOCSIN_{prefix.upper()}", b"{}", timeout=PATIENCE_S)
    return {
        each["name"]: each["config"].get("metadata", {}).get("tocsin-epoch", "")
        for each in msgspec.json.decode(answer.data)["consumers"]
    }


async def test_a_former_leader_leaves_the_consumers_of_its_successor_alone(
    shared_nats: NatsServer, raw: Client, prefix: str
) -> None:
    """Although it does not know that it was replaced: it believes to hold the lock."""
    former, leader = Agent(shared_nats, prefix, 1), Agent(shared_nats, prefix, 2)
    await former.bus.start()
    await leader.bus.start()
    # The end of its consumer ends its connection; it connects again.
    await former.notes.until(lambda: former.connections == [False, True])
    assert await consumers(raw, prefix) == {"one-2": "2"}
    await leader.bus.publish([message("a", each) for each in range(5)])
    await leader.notes.until(lambda: leader.handled == [0, 1, 2, 3, 4])
    assert (former.handled, leader.connections) == ([], [])
    reply = await leader.bus.request(message("a", 7, "Do"), TIMEOUT_US)
    assert (number(reply), former.asked, leader.asked) == (7, [], [7])
    await former.bus.close()
    await leader.bus.close()


async def test_a_leader_takes_its_messages_back_from_an_older_epoch(
    shared_nats: NatsServer, raw: Client, prefix: str
) -> None:
    """From an agent that was frozen during its start and resumes, with a database that is no longer its own."""
    former, leader = Agent(shared_nats, prefix, 1), Agent(shared_nats, prefix, 2)
    await leader.bus.start()
    # It must not be so quick that the start of the other one fails.
    leader.leads = False
    await former.bus.start()
    leader.leads = True
    await former.notes.until(lambda: former.connections == [False, True])
    assert await consumers(raw, prefix) == {"one-3": "2"}
    await former.bus.close()
    await leader.bus.close()


async def test_an_agent_of_a_restored_database_takes_over_from_newer_epochs(
    shared_nats: NatsServer, raw: Client, prefix: str
) -> None:
    before, restored = Agent(shared_nats, prefix, 50), Agent(shared_nats, prefix, 3)
    await before.bus.start()
    await before.bus.close()
    await restored.bus.start()
    assert await consumers(raw, prefix) == {"one-2": "3"}
    await restored.bus.publish([message("a", 1)])
    await restored.notes.until(lambda: restored.handled == [1])
    await restored.bus.close()


async def test_a_responder_without_the_lock_does_not_reply(shared_nats: NatsServer, prefix: str) -> None:
    # The end of a consumer would end its connection.
    former = Agent(shared_nats, prefix, 1, UNCHECKED, subscribes=False)
    leader = Agent(shared_nats, prefix, 2)
    await former.bus.start()
    # This command arrived while it led; its failure is not the outcome if another agent received it too.
    former.gate.clear()
    early = asyncio.create_task(former.bus.request(message("a", 0, "Do"), 1_000_000))
    await former.notes.until(lambda: former.asked == [0])
    former.leads = False
    former.gate.set()
    with pytest.raises(RequestUnanswered):
        await early
    await leader.bus.start()
    for each in range(1, 6):
        assert number(await leader.bus.request(message("a", each, "Do"), TIMEOUT_US)) == each
    assert (former.asked, leader.asked) == ([0], [1, 2, 3, 4, 5])
    await former.bus.close()
    await leader.bus.close()


async def test_an_agent_without_the_lock_takes_nothing_until_it_has_it_again(
    shared_nats: NatsServer, raw: Client, prefix: str
) -> None:
    """A database that restarts costs it neither its connection nor a message."""
    agent = Agent(shared_nats, prefix, 1)
    await agent.bus.start()
    await agent.bus.publish([message("a", 0)])
    await agent.notes.until(lambda: agent.handled == [0])
    agent.leads = False

    async def refused() -> bool:
        try:
            await agent.bus.request(message("a", 0, "Do"), 100_000)
        except BusUnavailable:
            # At once: nobody listens.
            return True
        except RequestUnanswered:
            return False
        return False

    async with asyncio.timeout(PATIENCE_S):
        while not await refused():
            pass
    # A request for messages may still be outstanding.
    await agent.bus.publish([message("b", each) for each in range(5)])
    agent.leads = True
    await agent.notes.until(lambda: sorted(agent.handled) == [0, 0, 1, 2, 3, 4])
    async with asyncio.timeout(PATIENCE_S):
        while await refused():
            pass
    assert await consumers(raw, prefix) == {"one-2": "1"}
    assert agent.connections == []
    await agent.bus.close()
