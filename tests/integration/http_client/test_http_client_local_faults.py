"""Local shortages and stalls are never reported as faults of the receiver."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from callback_receivers import OK, Peer, keep_answering, send
from tests.support.patience import PATIENCE_S

from tocsin.http_client.limits import CallbackLimits
from tocsin.model.answer import NoResponse, NotSent, Response

TOOK = Response(200, b'{"ok":true}')


async def hang(peer: Peer) -> None:
    """Accepts the request and never responds."""
    await peer.request()
    await peer.closed_by_client()


@contextmanager
def no_descriptor_free() -> Iterator[None]:
    """Uses up all file descriptors of the process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    gc.collect()
    taken = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(_open_descriptors()) + 1, hard))
    try:
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)


def _open_descriptors() -> list[int]:
    return [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]


async def test_agent_calls_do_not_use_up_timers_connections(receive: Any, client_with: Any) -> None:
    hung, healthy = await receive(hang), await receive(keep_answering)
    client = client_with(limits=CallbackLimits(connections_max=4, agent_connections_max=4))
    calls = [asyncio.ensure_future(send(client, hung.url)) for _ in range(12)]
    exchanges = await asyncio.gather(*[client.begin(healthy.url, timeout_us=5_000_000) for _ in range(20)])
    assert {exchange.outcome for exchange in exchanges} == {TOOK}
    for call in calls:
        call.cancel()


async def test_an_attempt_without_a_connection_was_not_sent(receive: Any, client_with: Any) -> None:
    receiver = await receive(hang)
    client = client_with(limits=CallbackLimits(connections_max=1, connection_wait_max_us=50_000))
    first = client.begin(receiver.url)
    exchange = await client.call(receiver.url)
    assert isinstance(exchange.outcome, NotSent)
    assert (exchange.outcome.code, exchange.sent_at) == ("NO_CONNECTION_SLOT", None)
    assert not first.done()


async def test_the_timeout_starts_when_a_connection_is_free(receive: Any, client_with: Any) -> None:
    """Waiting for a local limit does not count against the receiver's timeout."""
    free = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await free.wait()
        await peer.send(OK)
        await keep_answering(peer)

    receiver = await receive(script)
    client = client_with(limits=CallbackLimits(connections_max=1, connection_wait_max_us=20_000_000))
    first = client.begin(receiver.url)
    second = client.begin(receiver.url, timeout_us=1_000_000)
    await asyncio.sleep(1.1)
    free.set()
    assert [(await first).outcome, (await second).outcome] == [TOOK, TOOK]


async def test_without_a_descriptor_nothing_was_sent(receive: Any, client: Any) -> None:
    receiver = await receive(keep_answering)
    with no_descriptor_free():
        exchange = await client.call(receiver.url)
        tls = await client.call(receiver.url.replace("http:", "https:"))
        name = await client.call(f"http://hooks.example:{receiver.port}/")
    for outcome in (exchange.outcome, tls.outcome, name.outcome):
        assert isinstance(outcome, NotSent), outcome
        assert outcome.code == "NO_DESCRIPTOR"
    assert exchange.sent_at is None
    assert (await client.call(receiver.url)).outcome == TOOK


async def test_idle_connections_make_room_for_descriptors(receive: Any, client: Any) -> None:
    others = [await receive(keep_answering) for _ in range(3)]
    for other in others:
        assert (await client.call(other.url)).outcome == TOOK
    # The receiver's own end is opened when there is room again: both are one process here.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with no_descriptor_free():
            client.begin(f"http://127.0.0.1:{listening.getsockname()[1]}/")
            await others[0].closed.wait()
            await asyncio.to_thread(_readable, listening)
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            assert (await asyncio.to_thread(connection.recv, 4)) == b"POST"


def _readable(listening: socket.socket) -> None:
    poll = select.poll()
    poll.register(listening, select.POLLIN)
    assert poll.poll(PATIENCE_S * 1_000)


async def test_without_a_local_port_nothing_was_sent(client: Any, monkeypatch: Any) -> None:
    """The port range is global to the machine: the shortage is simulated where the loop connects."""

    async def no_port(*args: object, **options: object) -> None:
        raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))

    monkeypatch.setattr(client.caller._timers._connector, "_dial", no_port)
    outcome = (await client.call("http://127.0.0.1:9/")).outcome
    assert isinstance(outcome, NotSent)
    assert outcome.code == "NO_LOCAL_PORT"


async def test_a_request_that_was_sent_is_never_reported_as_not_sent(receive: Any, client_with: Any) -> None:
    """Its idle connection closed, and the limit left no room for a second one."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()

    receiver, hung = await receive(script), await receive(hang)
    client = client_with(limits=CallbackLimits(connections_max=1))
    assert (await client.call(receiver.url)).outcome == TOOK
    again = client.begin(receiver.url, timeout_us=2_000_000)
    client.begin(hung.url)
    exchange = await again
    assert isinstance(exchange.outcome, NoResponse)
    assert (exchange.outcome.code, exchange.sent_at is not None) == ("CONNECTION_CLOSED", True)


# -- a stalled process


CALLING = """
import asyncio, sys, time
import uvloop
from callback_receivers import Client, send

async def main(url, timeout_us):
    client = Client()
    print(time.monotonic(), flush=True)
    ends = [client.begin(url, timeout_us=timeout_us) for _ in range(10)]
    ends += [send(client, url, timeout_us=timeout_us) for _ in range(5)]
    for end in await asyncio.gather(*ends):
        print(getattr(end.outcome, "status", None) or end.outcome.code, flush=True)
    await client.caller.close()

(uvloop.run if sys.argv[2] == "uvloop" else asyncio.run)(main(sys.argv[1], int(sys.argv[3])))
"""


async def test_responses_buffered_while_the_process_was_stalled_are_read(receive: Any) -> None:
    for timeout_s in (1, 4, 16):
        # On a busy machine the requests may not arrive before their time is over. Then they get more.
        if outcomes := await _outcomes_of_a_stalled_process(receive, timeout_s):
            break
    assert sorted(outcomes) == [b"200"] * 14 + [b"TIMEOUT"]


async def _outcomes_of_a_stalled_process(receive: Any, timeout_s: float) -> list[bytes]:
    """How its requests end. Nothing, if it was not stalled while all of them were in flight."""
    stopped, everyone = asyncio.Event(), asyncio.Barrier(16)

    async def script(peer: Peer) -> None:
        await peer.request()
        await everyone.wait()
        await stopped.wait()
        # One stays silent: its time is over all the same.
        if peer.number > 1:
            await peer.send(OK)
        await peer.closed_by_client()

    receiver = await receive(script)
    loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", CALLING, receiver.url, loop, str(int(timeout_s * 1e6))]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            began_s = float(await asyncio.to_thread(process.stdout.readline))
            async with asyncio.timeout(timeout_s):
                await everyone.wait()
            os.kill(process.pid, signal.SIGSTOP)
            await asyncio.to_thread(os.waitid, os.P_PID, process.pid, os.WSTOPPED)
            in_flight = time.monotonic() < began_s + timeout_s
            stopped.set()
            await asyncio.sleep(timeout_s + 0.2)
            os.kill(process.pid, signal.SIGCONT)
            printed, _ = await asyncio.to_thread(process.communicate, None, PATIENCE_S)
        except (TimeoutError, ChildProcessError):
            # Or it had ended already when it was to be stopped.
            return []
        finally:
            process.kill()
    return printed.split() if in_flight else []


async def test_a_stall_before_sending_is_reported_as_not_sent(dead_port: int, client: Any) -> None:
    call = client.begin(f"http://127.0.0.1:{dead_port}/", timeout_us=200_000)
    await asyncio.sleep(0)
    time.sleep(1.3)  # noqa: ASYNC251 -- the loop has to stand still
    exchange = await call
    assert isinstance(exchange.outcome, NotSent)
    assert (exchange.outcome.code, exchange.sent_at) == ("PROCESS_STALLED", None)
