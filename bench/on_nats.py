"""A burst of timers that become messages of NATS, beside one of webhooks in the same run."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager
from pathlib import Path

import nats
from tests.support.nats import NatsServer
from tests.support.program import running

from bench import processes, scenarios
from bench.scenarios import Costs, Results

_SUBJECT = "orders"
#: How often the stream is asked how many messages it has: the drain lasts seconds.
_POLL_S = 0.02


def burst_on_nats(count: int) -> Results:
    """Timers due at the same instant, published to one stream at full speed, after a burst of webhooks."""
    plain = scenarios.burst(count)
    with running(NatsServer()) as broker:
        drain, cpu = asyncio.run(_drain(broker.url, count))
    name = "burst drain, fires per s"
    return {
        f"on NATS: {name}": drain,
        f"on NATS: {scenarios.DRAIN_CPU}": cpu,
        f"webhooks: {name}": plain[name],
        f"webhooks: {scenarios.DRAIN_CPU}": plain[scenarios.DRAIN_CPU],
        "on NATS: drain, ratio": drain / max(plain[name], 1e-9),
    }


def _server(data: Path, url: str) -> AbstractContextManager[processes.Running]:
    config = data / "tocsin.toml"
    config.write_text(f'nats_url = "{url}"\nnats_targets = ["default={_SUBJECT}"]\n')
    return processes.server(data, "--config", str(config))


async def _drain(url: str, count: int) -> tuple[float, float]:
    """Messages a second from the first that the stream has stored to the last, as webhooks are counted, and the server's CPU
    seconds per 1,000."""
    client = await nats.connect(url)
    try:
        jetstream = client.jetstream()
        await jetstream.add_stream(name=_SUBJECT.upper(), subjects=[_SUBJECT])
        with processes.folder() as data, processes.receiver() as unused, _server(data, url) as server:
            due = scenarios.instant_after_creating(server, unused, count)
            processes.load(
                server.port,
                unused.port,
                due_us=due,
                count=count,
                batch=1_000,
                connections=4,
                receiver=f"nats://{_SUBJECT}",
            )
            ahead_s = (due - processes.now_us()) / 1e6
            if ahead_s < 0:
                raise RuntimeError("creating took longer than planned; the burst was due before it was complete")
            await asyncio.sleep(max(ahead_s - 0.3, 0))
            costs, deadline = Costs(server), time.monotonic() + 120
            beside = scenarios.start_creating_beside(server, unused, due)
            while (stored := (await jetstream.stream_info(_SUBJECT.upper())).state.messages) < count:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"the stream has {stored} of {count} messages")
                await asyncio.sleep(_POLL_S)
            used = costs.of("burst drain", count)[scenarios.DRAIN_CPU]
            first, last = [(await jetstream.get_msg(_SUBJECT.upper(), number)).time for number in (1, stored)]
            assert first is not None and last is not None
            await asyncio.to_thread(processes.finish, beside, failing=True)
    finally:
        await client.close()
    return count / (last - first).total_seconds(), used
