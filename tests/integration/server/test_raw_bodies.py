"""Raw bodies, on a real server."""

from __future__ import annotations

import base64
import hmac
import time
from pathlib import Path
from typing import Any

import httpx

from tests.support.calls import Api
from tests.support.scripted import Arrival, Reply, ScriptedReceiver
from tests.support.server import ServerProcess
from tocsin.model.instants import format_instant

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ALL_BYTES = bytes(range(256)) * 4
XML = '<?xml version="1.0"?>\r\n<a b="ü\U0001f514">\x00</a>\n'
#: What is sent, its default content type, and what has to arrive.
BODIES: dict[str, tuple[dict[str, Any], str, bytes]] = {
    "text": ({"text": XML}, "text/plain; charset=utf-8", XML.encode()),
    "typed": ({"text": "<a/>", "contentType": "application/xml"}, "application/xml", b"<a/>"),
    "binary": ({"base64": base64.b64encode(ALL_BYTES).decode()}, "application/octet-stream", ALL_BYTES),
    "empty": ({"text": ""}, "text/plain; charset=utf-8", b""),
    "largest": (
        {"base64": base64.b64encode(b"\xfe" * 102_400).decode()},
        "application/octet-stream",
        b"\xfe" * 102_400,
    ),
}


def check_signature(call: Arrival) -> None:
    """Verifies by the Standard Webhooks specification: over id, timestamp and the exact bytes of the body."""
    signed = f"{call.headers['webhook-id']}.{call.headers['webhook-timestamp']}.".encode() + call.raw
    digest = hmac.digest(base64.b64decode(SECRET.removeprefix("whsec_")), signed, "sha256")
    assert call.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


async def test_raw_bodies_are_delivered_byte_for_byte_and_signed_even_after_a_crash(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    await server.start()
    try:
        api = Api(server)
        await api("namespaces/create", name="raw", secret=SECRET)
        await api("namespaces/update", name="raw", paused=True)
        async with ScriptedReceiver({}) as receiver:
            for name, (body, media_type, _) in BODIES.items():
                timer = await api.create(name, receiver.url(name), namespace="raw", body=body)
                assert timer["body"] == {"contentType": media_type, **body}
                assert "payload" not in timer
            # Numbers and spaces of JSON stay as they were written.
            written = b'{"namespace":"raw","id":"json","delay":"0s","callbackUrl":"%s","body":{"json": {"n" : 1.10} }}'
            async with httpx.AsyncClient(base_url=server.url) as client:
                content = written % receiver.url("json").encode()
                headers = {"content-type": "application/json"}
                created = await client.post("/api/v1/timers/create", content=content, headers=headers)
                assert created.json()["body"] == {"contentType": "application/json", "json": {"n": 1.1}}
            await server.kill()
            await server.start()
            await api("namespaces/update", name="raw", paused=False)
            for name, sent in {**{name: sent for name, (*_, sent) in BODIES.items()}, "json": b'{"n" : 1.10}'}.items():
                (call,) = await receiver.count(name, 1)
                assert call.raw == sent, name
                assert call.headers["content-type"] == (BODIES[name][1] if name in BODIES else "application/json")
                assert (call.headers["tocsin-namespace"], call.headers["tocsin-timer-id"]) == ("raw", name)
                assert call.headers["tocsin-attempt"] == "1"
                check_signature(call)
    finally:
        await server.stop()


async def test_payload_and_raw_body_replace_one_another(server: ServerProcess) -> None:
    api = Api(server)
    again = format_instant(time.time_ns() // 1_000)
    scripts = {"answered": [Reply(200, b'{"nextExecuteAt":"%s","payload":{"n" : 2}}' % again.encode()), Reply(200)]}
    async with ScriptedReceiver(scripts) as receiver:
        await api.create("answered", receiver.url("answered"), body={"text": "first"})
        first, second = await receiver.count("answered", 2)
        assert (first.raw, second.raw) == (b"first", b'{"n" : 2}')
        assert second.headers["content-type"] == "application/json"
        assert second.headers["tocsin-execute-at"] == again
        await api.create("t", receiver.url("t"), delay="1h", payload=1, headers={"content-type": "text/xml"})

        async def update(**changes: Any) -> tuple[int, Any]:
            return await api("timers/update", namespace="default", timerId="t", **changes)

        status, problem = await update(body={"text": "x"})
        assert (status, problem["errors"][0]["path"]) == (400, "headers.content-type")
        status, timer = await update(body={"text": "x", "contentType": "text/xml"}, headers=None)
        assert (status, timer["body"], "payload" in timer) == (200, {"text": "x", "contentType": "text/xml"}, False)
        status, problem = await update(headers={"Tocsin-Attempt": "7"})
        assert (status, problem["errors"][0]["path"]) == (400, "headers.Tocsin-Attempt")
        status, timer = await update(tags=["a"])
        assert (status, timer["body"]["text"]) == (200, "x")
        for content in ({}, {"payload": 1}, {"body": {"text": "y"}}):
            status, problem = await update(method="GET", **content)
            assert (status, [bad["path"] for bad in problem["errors"]]) == (
                400,
                ["payload" if "payload" in content else "body"],
            )
        status, timer = await update(method="GET", payload=None)
        assert (status, timer["method"], timer["payload"]) == (200, "GET", None)
        status, problem = await update(payload=1)
        assert (status, problem["errors"][0]["path"]) == (400, "payload")
        assert "is not sent with GET" in problem["errors"][0]["reason"]
        status, timer = await update(body={"text": ""})
        assert (status, timer["body"]["text"]) == (200, "")
        status, timer = await update(payload={"n": 3}, executeAt=again, method="POST")
        assert (status, timer["payload"], "body" in timer) == (200, {"n": 3}, False)
        (call,) = await receiver.count("t", 1)
        assert (call.body["payload"], "tocsin-attempt" in call.headers) == ({"n": 3}, False)
