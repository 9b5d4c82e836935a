"""Both clients with a real server."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tocsin_client import AsyncClient, CreateTimer, RetryPolicy, errors
from tocsin_client._core.ids import uuid7
from tocsin_client.receiver import Receiver, done, reschedule_at


@pytest.fixture(scope="module")
def hook():
    """A receiver's URL, and the firings that it got."""
    seen = []

    def handler(firing):
        seen.append(firing)
        payload = firing.payload or {}
        if payload.get("again"):
            return reschedule_at(firing.execute_at + timedelta(hours=1), {"again": payload["again"] - 1})
        return done()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            answer = Receiver(unsigned=True).handle(self.headers.items(), body, handler)
            self.send_response(answer.status)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_):
            pass

    with contextlib.closing(ThreadingHTTPServer(("127.0.0.1", 0), Hook)) as listener:
        listener.close = listener.server_close
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listener.server_port}/", seen
        listener.shutdown()


def test_timers(server, hook):
    url, seen = hook
    with server.client() as client:
        created = client.timers.create(
            "default", "order", url, delay="24h", payload={"order": 17}, retry_policy=RetryPolicy(max_attempts=2)
        )
        assert created.retry_policy.max_attempts == 2 and created.execute_at.microsecond
        changed = client.timers.update("default", "order", retry_policy=None, tags=["eu"])
        assert (changed.retry_policy, changed.tags) == (None, ["eu"])
        assert [each.id for each in client.timers.list("default", status="pending", tags=["eu"])] == ["order"]
        server.advance("25h")
        assert client.timers.wait("default", "order", timeout=30).status == "completed"
        assert [each.payload for each in seen if each.timer_id == "order"] == [{"order": 17}]
        assert "finished" in client.timers.explain("default", "order").sentence
        assert [run.status for run in client.timers.history("default", "order")] == ["completed"]
        with pytest.raises(errors.TimerNotPending):
            client.timers.delete("default", "order")
        with pytest.raises(errors.TimerNotFound) as raised:
            client.timers.get("default", "nobody")
        assert raised.value.correlation_id
        with pytest.raises(errors.InvalidInput) as invalid:
            client.timers.create("default", "bad", "ftp://x/", delay="soon")
        assert {field.path for field in invalid.value.fields} == {"delay", "callbackUrl"}


def test_a_chain_of_reschedules(server, hook):
    url, seen = hook
    with server.client() as client:
        client.timers.create("default", "chain", url, delay="1h", payload={"again": 2})
        server.advance("1d")
    assert [each.payload["again"] for each in seen if each.timer_id == "chain"] == [2, 1, 0]


def test_many(server, hook):
    with server.client() as client:
        client.namespaces.create("many")
        timers = [CreateTimer(namespace="many", id=f"t{i}", callback_url=hook[0], delay="30d") for i in range(1_500)]
        timers[7] = CreateTimer(namespace="many", id="t7", callback_url="nowhere", delay="30d")
        results = client.timers.create_many(iter(timers))
        assert [i for i, result in enumerate(results) if result.error] == [7]
        pages = list(client.timers.list("many", limit=1_000).pages())
        assert [len(page) for page in pages] == [1_000, 499]


def test_batcher(server, hook):
    with server.client() as client:
        client.namespaces.create("batched")
        with client.timers.batcher() as batcher:
            new = CreateTimer(namespace="batched", id="a", callback_url=hook[0], delay="30d")
            futures = [batcher.add(new) for _ in range(3)]
            refused = batcher.add(CreateTimer(namespace="batched", id="b", callback_url="nowhere", delay="30d"))
        assert [future.result().id for future in futures] == ["a"] * 3
        assert isinstance(refused.exception(), errors.InvalidInput)
        with pytest.raises(errors.BatcherClosed):
            batcher.add(new)


def test_schedules(server, hook):
    url, seen = hook
    # Half a day from now, where each day has 24 hours.
    cron = f"0 {(server.now().hour + 12 + 9) % 24} * * *"
    with server.client() as client:
        made = client.schedules.create("default", "nightly", url, cron=cron, time_zone="Asia/Tokyo")
        assert (
            made.next_instants[0].utcoffset() == timedelta()
            and made.next_instants == client.schedules.preview("default", "nightly", count=3).instants
        )
        assert client.schedules.pause("default", "nightly").status == "paused"
        assert client.schedules.resume("default", "nightly").status == "active"
        client.schedules.trigger("default", "nightly")
        client.schedules.backfill(
            "default", "nightly", after=made.next_instants[0] - timedelta(days=2), before=made.next_instants[0]
        )
        server.advance("1d")
        assert client.schedules.get("default", "nightly").counts == {"completed": 4}
        assert len([each for each in seen if each.timer_id == "nightly"]) == 4
        sources = {run.source for run in client.schedules.history("default", "nightly") if run.status == "completed"}
        assert sources == {"regular", "trigger", "backfill"}
        assert client.schedules.update("default", "nightly", cron="0 4 * * *", max_occurrences=None).cron == "0 4 * * *"
        assert [each.id for each in client.schedules.list("default")] == ["nightly"]
        client.schedules.delete("default", "nightly")
        with pytest.raises(errors.ScheduleEnded):
            client.schedules.delete("default", "nightly")


def test_calls(server, hook):
    with server.client() as client:
        calls = client.calls(str(uuid7(1)))
        later = calls.submit("charge", "POST", hook[0], body={"order": 17}, delay="1h", tags=["a"])
        calls.tag(later.service_call_id, "b/c")
        calls.untag(later.service_call_id, "a")
        assert calls.get(later.service_call_id).tags == ["b/c"]
        assert [each.name for each in calls.list(status=["Scheduled", "Running"], limit=1)] == ["charge"]
        assert calls.trace(later.service_call_id).entries
        calls.delete(later.service_call_id)
        with pytest.raises(errors.ServiceCallNotFound):
            calls.get(later.service_call_id)
        now = calls.submit("charge", "GET", server.url + "/healthz")
        assert calls.wait(now.service_call_id, timeout=60).status == "Succeeded"


def test_namespaces_and_cluster(server):
    with server.client() as client:
        client.namespaces.create("eu", num_shards=2, history="failures")
        assert client.namespaces.update("eu", paused=True).paused
        assert {each.name: each.num_shards for each in client.namespaces.list()}["eu"] == 2
        assert client.namespaces.rotate_secret("eu", grace="0s").secret.startswith("whsec_")
        with pytest.raises(errors.NamespaceExists):
            client.with_options(retries=0).namespaces.create("eu")
        assert client.cluster.get().total_shards


def test_asynchronous(server, hook):
    async def run():
        async with AsyncClient(server.url) as client:
            await client.namespaces.create("async")
            async with client.timers.batcher() as batcher:
                futures = [
                    await batcher.add(CreateTimer(namespace="async", id=f"t{i}", callback_url=hook[0], delay="30d"))
                    for i in range(1_200)
                ]
            assert len({timer.id for timer in await asyncio.gather(*futures)}) == 1_200
            assert len([each async for each in client.timers.list("async")]) == 1_200
            assert len([page async for page in client.timers.list("async", limit=1_000).pages()]) == 2
            with pytest.raises(errors.WaitTimeout):
                await client.timers.wait("async", "t1", timeout=0.01)

    asyncio.run(run())
