"""A batcher in a process that can't start as many threads as it wants."""

from __future__ import annotations

import threading

import pytest
from tests.support.patience import PATIENCE_S

from steps import World, reply, timer
from tocsin_client._core.session import Options
from tocsin_client._sync.batcher import Batcher
from tocsin_client._sync.runner import Runner

NEW = {"namespace": "n", "id": "a", "callback_url": "http://x/", "delay": "1h"}


@pytest.fixture
def threads(monkeypatch):
    """The names of the threads that can't be started begin like one of these."""
    refused: list[str] = []
    start = threading.Thread.start

    def limited(thread):
        if thread.name.startswith(tuple(refused)):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    return refused


def batcher():
    world = World(*[reply(200, {"results": [{"timer": timer()}]})] * 3)
    return Batcher(Runner(world.session, world, Options()), block=True)


def test_without_a_thread_for_a_request_it_is_sent_all_the_same(threads):
    threads.append("tocsin-batch_")
    made = batcher()
    assert made.add(NEW).result(PATIENCE_S).id == "a"
    threads.clear()
    assert made.add(NEW).result(PATIENCE_S).id == "a"
    made.close()
    assert made._queue.idle and len(made._runner.transport.sent) == 2


def test_without_a_thread_of_its_own_nothing_is_added(threads):
    threads.append("tocsin-batcher")
    made = batcher()
    with pytest.raises(RuntimeError):
        made.add(NEW)
    threads.clear()
    assert made.add(NEW).result(PATIENCE_S).id == "a"
    made.close()
