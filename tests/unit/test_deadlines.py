"""What arrived before a deadline is noticed counts, however long the process was stalled."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from nats.aio.msg import Msg

from tocsin.http_client.in_flight import Deadlines
from tocsin.http_client.limits import CallbackLimits
from tocsin.messaging.limits import BusLimits
from tocsin.model.answer import NoResponse, Response
from tocsin.model.subjects import SubjectTargets
from tocsin.ports.http import Exchange, Invocation
from tocsin.targets.nats import NatsCaller
from tocsin.testing.clock import FakeClock


class Sent:
    """A request that has expired."""

    deadline_ns, sent_at = 0, 0


@pytest.mark.parametrize("polls", [1, 3, 12])
async def test_the_sockets_are_polled_as_often_as_asked_before_a_deadline_takes_effect(polls: int) -> None:
    expired: list[Sent] = []
    deadlines: Deadlines[Sent] = Deadlines(3_600_000_000, lambda sent, _: expired.append(sent), polls)
    deadlines.add(Sent())
    deadlines._check()
    for _ in range(polls - 1):
        await asyncio.sleep(0)
    assert expired == []
    await asyncio.sleep(0)
    assert len(expired) == 1
    deadlines.close()


class Connection:
    """Takes messages, and remembers where their acknowledgements go."""

    payload_bytes_max = 1_000_000

    def __init__(self) -> None:
        self.replies: list[str] = []

    def send(self, subject: str, body: bytes, reply: str, headers: dict[str, str]) -> None:
        self.replies.append(reply)

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("turns", [11, 12])
async def test_acknowledgements_that_take_eleven_turns_to_read_come_before_the_timeout(turns: int) -> None:
    targets = SubjectTargets(["orders=orders"])
    limits = CallbackLimits(timeout_check_interval_us=3_600_000_000)
    caller = NatsCaller("nats://127.0.0.1:1", targets, BusLimits(), limits, FakeClock())
    connection: Any = Connection()
    caller._connection = connection
    answers: list[Exchange] = []
    caller.invoke(
        Invocation("orders", "t", 0, 0, 1, msgspec.Raw(b"null"), "msg_1", "nats://orders.a", "POST", None, 0, (), None),
        answers.append,
    )
    caller._deadlines._check()
    for _ in range(turns):
        await asyncio.sleep(0)
    client: Any = None
    caller._acknowledged(Msg(client, subject=connection.replies[0], data=b'{"stream": "s", "seq": 1}'))
    (answer,) = answers
    assert isinstance(answer.outcome, Response if turns == 11 else NoResponse)
    await caller.close()
