"""`tocsin timers` against a scripted server: requests, output, failures."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
import trustme

from tests.integration.cli.conftest import answer, problem
from tests.support.cases import each
from tocsin.cli.receiver import ReceiverResponse

HOOK = "http://hook.example/x"


def last_body(scripted):
    return msgspec.json.decode(scripted.received[-1].body)


class TestCreate:
    def test_sends_the_request_and_shows_the_timer(self, tocsin, scripted):
        ran = tocsin(
            "timers", "create", HOOK, "--in", "30s", "--id", "a", "--payload", '{"n": 1.50}', "-H", "X-One: 1",
            "--tag", "t", "--retry-attempts", "3", "--retry-initial", "2s", "--timeout", "5", "--expire-after", "15m",
            "--server", scripted.url,
        )  # fmt: skip
        assert ran.code == 0, ran.err
        sent = last_body(scripted)
        assert sent.pop("idempotencyKey")
        assert sent == {
            "namespace": "default",
            "id": "a",
            "delay": "30s",
            "callbackUrl": HOOK,
            "payload": {"n": 1.5},
            "headers": {"X-One": "1"},
            "tags": ["t"],
            "callbackTimeoutSeconds": 5,
            "expireAfter": "15m",
            "retryPolicy": {"maxAttempts": 3, "initialInterval": "2s"},
        }
        assert b"1.50" in scripted.received[-1].body, "the payload travels as it was written"
        assert "pending" in ran.out

    def test_generates_an_id_if_none_is_given(self, tocsin, scripted):
        ran = tocsin("timers", "create", HOOK, "--at", "2027-01-31T14:00:00+02:00", "--json", "--server", scripted.url)
        assert re.fullmatch(r"[0-9a-f-]{36}", ran.json()["id"])
        assert ran.json()["executeAt"] == "2027-01-31T12:00:00Z"

    def test_payload_from_a_file(self, tocsin, scripted, tmp_path):
        (tmp_path / "payload.json").write_text('{"from": "file"}')
        tocsin("timers", "create", HOOK, "--in", "1s", "--payload", "@payload.json", "--server", scripted.url)
        assert last_body(scripted)["payload"] == {"from": "file"}

    def test_a_raw_body_is_text_or_the_bytes_of_a_file(self, tocsin, scripted, tmp_path):
        (tmp_path / "b.bin").write_bytes(b"\x00\xff")
        for arguments, sent in (
            (["--body", "<a/>", "--content-type", "text/xml"], {"text": "<a/>", "contentType": "text/xml"}),
            (["--body", "@b.bin"], {"base64": "AP8="}),
        ):
            ran = tocsin("timers", "create", HOOK, "--in", "1s", *arguments, "--server", scripted.url)
            assert ran.code == 0, ran.err
            assert last_body(scripted)["body"] == sent
            assert "payload" not in last_body(scripted)
        tocsin("timers", "update", "a", "--body", "x", "--server", scripted.url)
        assert last_body(scripted) == {"namespace": "default", "timerId": "a", "body": {"text": "x"}}

    def test_retry_default_removes_the_policy(self, tocsin, scripted):
        tocsin("timers", "update", "a", "--retry-default", "--server", scripted.url)
        assert last_body(scripted) == {"namespace": "default", "timerId": "a", "retryPolicy": None}

    def test_expiry_is_changed_or_removed(self, tocsin, scripted):
        for arguments, sent in ((["--expire-after", "20m"], "20m"), (["--no-expiry"], None)):
            tocsin("timers", "update", "a", *arguments, "--server", scripted.url)
            assert last_body(scripted) == {"namespace": "default", "timerId": "a", "expireAfter": sent}
        ran = tocsin("timers", "update", "a", "--expire-after", "1m", "--no-expiry")
        assert ran.code == 2
        assert "give only one of them" in ran.err

    def test_description_is_changed_or_removed_and_shown_where_there_is_one(self, tocsin, scripted):
        for text, sent in (("An invoice", "An invoice"), ("", None)):
            tocsin("timers", "update", "a", "--description", text, "--server", scripted.url)
            assert last_body(scripted) == {"namespace": "default", "timerId": "a", "description": sent}
        tocsin("timers", "create", HOOK, "--in", "1h", "--id", "a", "--server", scripted.url)
        assert "description" not in tocsin("timers", "list", "--server", scripted.url).out
        ran = tocsin(
            "timers", "create", HOOK, "--in", "1h", "--id", "b", "--description", "Late", "--server", scripted.url
        )
        assert re.search(r"^description +Late *$", ran.out, re.MULTILINE)
        listed = tocsin("timers", "list", "--server", scripted.url).out
        assert "description" in listed
        assert "Late" in listed

    def test_explain_shows_the_sentence_first(self, tocsin, scripted):
        ran = tocsin("timers", "explain", "a", "--server", scripted.url)
        assert last_body(scripted) == {"namespace": "default", "timerId": "a"}
        assert ran.out.startswith("a is in the store.\n")
        assert re.search(r"next +2099-01-01T00:00:00Z \(in ", ran.out)
        assert re.search(r"owner +none", ran.out)
        assert tocsin("timers", "explain", "a", "--json", "--server", scripted.url).json()["shard"] == 3

    def test_key_is_sent(self, tocsin, scripted, monkeypatch):
        monkeypatch.setenv("TOCSIN_KEY", "tk_1_x")
        monkeypatch.setenv("TOCSIN_URL", scripted.url)
        assert tocsin("timers", "create", HOOK, "--in", "1s").code == 0
        assert scripted.received[-1].headers["authorization"] == "Bearer tk_1_x"

    @each(
        "arguments, message",
        [
            ([HOOK], "--in"),
            ([HOOK, "--in", "1s", "--at", "2027-01-01T00:00:00Z"], "exactly one of --in"),
            ([HOOK, "--in", "soon"], "--in: 'soon' is not a duration; write it as 500ms"),
            ([HOOK, "--at", "2027-01-31T12:00:00"], "--at: '2027-01-31T12:00:00' has no time zone; add Z"),
            ([HOOK, "--in", "1s", "--payload", "hello"], "--payload: is not JSON"),
            ([HOOK, "--in", "1s", "--payload", "@missing"], "--payload: missing can't be read"),
            ([HOOK, "--in", "1s", "-H", "nonsense"], "write it as 'Name: value'"),
            ([HOOK, "--in", "1s", "--retry-for", "x"], "--retry-for"),
            ([HOOK, "--in", "1s", "--server", "example"], "--server: 'example' is not a URL"),
            ([], "Missing argument"),
            ([HOOK, "--inn", "1s"], "--in"),
        ],
    )
    def test_usage_errors_name_the_option_and_the_remedy(self, tocsin, arguments, message):
        ran = tocsin("timers", "create", *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert "Traceback" not in ran.err


class TestFailures:
    def test_fields_refused_by_the_server_are_named(self, tocsin, scripted):
        scripted.script = [
            problem(
                400, "INVALID_INPUT", "…", errors=[{"path": "callbackUrl", "reason": "is no URL; begin with http://"}]
            )
        ]
        ran = tocsin("timers", "create", "x", "--in", "1s", "--server", scripted.url)
        assert ran.code == 1
        assert "INVALID_INPUT\n  callbackUrl: is no URL; begin with http://" in ran.err

    def test_not_found(self, tocsin, scripted):
        ran = tocsin("timers", "get", "nope", "--server", scripted.url)
        assert (ran.code, ran.out) == (1, "")
        assert "TIMER_NOT_FOUND: no such timer" in ran.err

    def test_a_missing_key_is_explained(self, tocsin, scripted):
        scripted.script = [problem(401, "UNAUTHORIZED", "a key is needed")]
        ran = tocsin("timers", "get", "a", "--server", scripted.url)
        assert ran.code == 1
        assert "--key or TOCSIN_KEY" in ran.err

    def test_a_503_is_retried(self, tocsin, scripted, monkeypatch):
        paused = []
        monkeypatch.setattr("time.sleep", paused.append)
        busy = problem(503, "SHARD_UNAVAILABLE", "moving")
        scripted.script = [busy, busy]
        assert tocsin("timers", "create", HOOK, "--in", "1s", "--server", scripted.url).code == 0
        assert len(paused) == 2
        # Whatever the outcome of the first requests, the server treats all as one create.
        assert len({json.loads(request.body)["idempotencyKey"] for request in scripted.received[-3:]}) == 1

    def test_retries_after_503_are_limited(self, tocsin, scripted, monkeypatch):
        monkeypatch.setattr("time.sleep", lambda pause_s: None)
        scripted.script = [problem(503, "SHARD_UNAVAILABLE", "moving")] * 100
        ran = tocsin("timers", "get", "a", "--server", scripted.url)
        assert ran.code == 1
        assert "SHARD_UNAVAILABLE" in ran.err
        assert len(scripted.received) == 7

    @pytest.mark.parametrize("body", [b"<html>hello</html>", b"[]", b'{"error'])
    def test_a_server_other_than_tocsin_is_reported(self, tocsin, scripted, body):
        scripted.script = [ReceiverResponse(404, body)]
        ran = tocsin("timers", "get", "a", "--server", scripted.url)
        assert ran.code == 1
        assert "check that it is a Tocsin server" in ran.err

    def test_an_unreachable_server_exits_with_3(self, tocsin):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            ran = tocsin("timers", "get", "a", "--server", f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert ran.code == 3
        assert "start a server with `tocsin serve`" in ran.err

    def test_a_certificate_that_is_not_trusted_is_named_as_the_reason(self, tocsin, tmp_path, monkeypatch):
        authority = trustme.CA()
        trusted = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(trusted)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
            # Each connection's handshake is made by the thread that serves it.
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"https://127.0.0.1:{server.server_port}"
            ran = tocsin("timers", "get", "a", "--server", url)
            assert ran.code == 3
            assert f"the certificate of {url} is refused" in ran.err and "SSL_CERT_FILE" in ran.err
            assert "tocsin serve" not in ran.err
            monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
            assert "check that it is a Tocsin server" in tocsin("timers", "get", "a", "--server", url).err
            server.shutdown()


class TestOthers:
    def test_update_sends_only_what_changes(self, tocsin, scripted):
        scripted.script = [answer({"id": "a", "status": "pending", "executeAt": "2099-01-01T00:00:00Z"})]
        ran = tocsin("timers", "update", "a", "--at", "2099-01-01T00:00:00Z", "--tag", "x", "--server", scripted.url)
        assert ran.code == 0, ran.err
        assert last_body(scripted) == {
            "namespace": "default", "timerId": "a", "executeAt": "2099-01-01T00:00:00Z", "tags": ["x"],
        }  # fmt: skip

    def test_update_without_changes_is_a_usage_error(self, tocsin):
        assert tocsin("timers", "update", "a").code == 2

    def test_delete_continues_after_a_refusal(self, tocsin, scripted):
        tocsin("timers", "create", HOOK, "--in", "1h", "--id", "b", "--server", scripted.url)
        ran = tocsin("timers", "delete", "a", "b", "--server", scripted.url)
        assert ran.code == 1
        assert "a: TIMER_NOT_FOUND" in ran.err
        assert "b is canceled" in ran.err
        assert not scripted.timers

    def test_list_prints_a_table_and_the_cursor(self, tocsin, scripted):
        for name in "abc":
            tocsin("timers", "create", HOOK, "--in", "1h", "--id", name, "--tag", "x", "--server", scripted.url)
        ran = tocsin("timers", "list", "--limit", "2", "--tag", "x", "--server", scripted.url)
        assert ran.code == 0, ran.err
        assert HOOK in ran.out
        assert "--cursor 2" in ran.err
        listed = tocsin("timers", "list", "--json", "--server", scripted.url).json()
        assert [timer["id"] for timer in listed["timers"]] == ["a", "b", "c"]


class TestWatch:
    @staticmethod
    def state(status, **fields):
        return answer({"id": "a", "status": status, "executeAt": "2099-01-01T00:00:00Z", **fields})

    def test_shows_changes_until_the_end(self, tocsin, scripted):
        pending, done = self.state("pending"), self.state("completed", attempts=2)
        scripted.script = [pending, pending, self.state("pending", attempts=1, lastError="HTTP_503"), done]
        ran = tocsin("timers", "watch", "a", "--interval", "50ms", "--server", scripted.url)
        assert ran.code == 0, ran.err
        lines = ran.out.splitlines()
        assert len(lines) == 3
        assert "HTTP_503" in lines[1]
        assert "completed" in lines[2]

    def test_a_failed_timer_is_a_failure(self, tocsin, scripted):
        scripted.script = [self.state("failed", lastError="HTTP_404")]
        ran = tocsin("timers", "watch", "a", "--server", scripted.url, "--json")
        assert ran.code == 1
        assert ran.json()["lastError"] == "HTTP_404"
        assert "failed: a" in ran.err

    def test_a_timer_without_history_is_gone_after_it_finished(self, tocsin, scripted):
        scripted.script = [self.state("pending"), problem(404, "TIMER_NOT_FOUND")]
        ran = tocsin("timers", "watch", "a", "--interval", "50ms", "--server", scripted.url)
        assert ran.code == 0
        assert "gone" in ran.out

    def test_an_unknown_timer_is_refused(self, tocsin, scripted):
        assert tocsin("timers", "watch", "a", "--server", scripted.url).code == 1

    def test_by_tag(self, tocsin, scripted):
        done = {"id": "a", "status": "completed", "executeAt": "2020-01-01T00:00:00Z"}
        scripted.script = [answer({"timers": [done], "nextCursor": "1"}), answer({"timers": [done | {"id": "b"}]})]
        ran = tocsin("timers", "watch", "--tag", "x", "--server", scripted.url)
        assert ran.code == 0
        assert len(ran.out.splitlines()) == 2
