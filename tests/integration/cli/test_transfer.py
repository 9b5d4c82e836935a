"""`tocsin timers import` and `export`: large files, bad rows, interruptions, round trips."""

from __future__ import annotations

import base64
import concurrent.futures
import io
import json

import msgspec
import pytest

from tests.integration.cli.conftest import answer, problem
from tocsin.cli.rows import COLUMNS, READ_ONLY
from tocsin.web.http import wire

HOOK = "http://hook.example/x"


def lines_of(*timers):
    return "".join(json.dumps(timer) + "\n" for timer in timers)


def timer(number, **fields):
    return {"id": f"t{number:05}", "executeAt": "2099-01-01T00:00:00Z", "callbackUrl": HOOK, **fields}


def ids(scripted):
    return sorted(timer_id for _, timer_id in scripted.timers)


class TestImport:
    def test_a_large_file_is_imported_in_batches(self, tocsin, scripted, tmp_path):
        (tmp_path / "t.jsonl").write_text(lines_of(*(timer(i) for i in range(3_500))))
        ran = tocsin("timers", "import", "t.jsonl", "--json", "--server", scripted.url)
        assert ran.code == 0, ran.err
        assert {name: ran.json()[name] for name in ("created", "failed", "report")} == {
            "created": 3_500, "failed": 0, "report": None,
        }  # fmt: skip
        assert len(scripted.received) == 4
        assert ids(scripted) == [f"t{i:05}" for i in range(3_500)]
        assert not (tmp_path / "t.jsonl.errors.jsonl").exists()

    def test_csv(self, tocsin, scripted, tmp_path):
        (tmp_path / "t.csv").write_text(
            "id,delay,callbackUrl,payload,tags,headers,callbackTimeoutSeconds\n"
            f'a,5m,{HOOK},"{{""n"": 1.50}}",x;y,"{{""X-A"": ""1""}}",5\n'
            f"b,1h,{HOOK},,,,\n"
        )
        ran = tocsin("timers", "import", "t.csv", "-n", "billing", "--server", scripted.url)
        assert ran.code == 0, ran.err
        assert "Created 2 timers" in ran.err
        a = scripted.timers["billing", "a"]
        assert (a["payload"], a["tags"], a["headers"], a["callbackTimeoutSeconds"]) == (
            {"n": 1.5}, ["x", "y"], {"X-A": "1"}, 5,
        )  # fmt: skip
        assert "payload" not in scripted.timers["billing", "b"]
        assert b"1.50" in scripted.received[-1].body

    def test_standard_input(self, tocsin, scripted, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.StringIO(lines_of(timer(1))))
        assert tocsin("timers", "import", "-", "--server", scripted.url).code == 0
        assert ids(scripted) == ["t00001"]

    def test_failed_rows_go_to_a_report_that_can_be_corrected_and_imported(self, tocsin, scripted, tmp_path):
        bad = timer(2)
        del bad["callbackUrl"]
        (tmp_path / "t.jsonl").write_text(lines_of(timer(1)) + "not json\n" + lines_of(bad, timer(3)))
        ran = tocsin("timers", "import", "t.jsonl", "--server", scripted.url)
        assert ran.code == 1
        assert "line 2: is not a JSON object" in ran.err
        assert "line 3: INVALID_INPUT: callbackUrl: is missing" in ran.err
        assert ids(scripted) == ["t00001", "t00003"]
        report = tmp_path / "t.jsonl.errors.jsonl"
        entries = [json.loads(line) for line in report.read_text().splitlines()]
        assert [entry["line"] for entry in entries] == [2, 3]
        corrected = entries[1]["timer"] | {"callbackUrl": HOOK}
        (tmp_path / "corrected.jsonl").write_text(lines_of(entries[1] | {"timer": corrected}))
        assert tocsin("timers", "import", "corrected.jsonl", "--server", scripted.url).code == 0
        assert ids(scripted) == ["t00001", "t00002", "t00003"]

    def test_a_refused_batch_does_not_affect_others(self, tocsin, scripted, tmp_path):
        (tmp_path / "t.jsonl").write_text(lines_of(*(timer(i) for i in range(1_500))))
        scripted.script = [problem(403, "FORBIDDEN", "not yours")]
        ran = tocsin("timers", "import", "t.jsonl", "--in-flight", "1", "--json", "--server", scripted.url)
        assert ran.code == 1
        assert (ran.json()["created"], ran.json()["failed"]) == (500, 1_000)

    def test_a_repeated_batch_has_the_same_keys_and_only_the_first_try_declares_them_new(
        self, tocsin, scripted, tmp_path, monkeypatch
    ):
        monkeypatch.setattr("time.sleep", lambda pause_s: None)
        scripted.script = [problem(503, "SHARD_UNAVAILABLE", "outcome unknown")]
        (tmp_path / "t.jsonl").write_text(lines_of(timer(1), timer(2)))
        assert tocsin("timers", "import", "t.jsonl", "--server", scripted.url).code == 0
        first, second = scripted.received
        keys = [[each["idempotencyKey"] for each in json.loads(sent.body)["timers"]] for sent in scripted.received]
        assert keys[0] == keys[1]
        assert len(set(keys[0])) == 2
        assert first.headers.get("tocsin-first-try") == "1"
        assert "tocsin-first-try" not in second.headers

    def test_a_row_of_the_report_keeps_its_key(self, tocsin, scripted, tmp_path):
        unknown = {"error": {"error": "SHARD_UNAVAILABLE", "message": "outcome unknown", "errors": []}}
        scripted.script = [answer({"results": [unknown]})]
        (tmp_path / "t.jsonl").write_text(lines_of(timer(1)))
        assert tocsin("timers", "import", "t.jsonl", "--server", scripted.url).code == 1
        assert tocsin("timers", "import", "t.jsonl.errors.jsonl", "--server", scripted.url).code == 0
        sent = [json.loads(each.body)["timers"][0]["idempotencyKey"] for each in scripted.received]
        assert sent[0] == sent[1]
        assert "tocsin-first-try" not in scripted.received[1].headers

    def test_an_unreachable_server_reports_the_line_to_continue_from(self, tocsin, scripted, tmp_path):
        (tmp_path / "t.jsonl").write_text(lines_of(*(timer(i) for i in range(5_000))))

        scripted.stop()
        ran = tocsin("timers", "import", "t.jsonl", "--in-flight", "1", "--json", "--server", scripted.url)
        assert ran.code == 3
        assert ran.json()["unreadFromLine"] == 1_001
        assert "--from-line 1001" in ran.err
        assert len((tmp_path / "t.jsonl.errors.jsonl").read_text().splitlines()) == 1_000
        scripted.__init__()
        scripted.start()
        again = tocsin("timers", "import", "t.jsonl", "--from-line", "1001", "--json", "--server", scripted.url)
        assert again.json()["created"] == 4_000
        rest = tocsin("timers", "import", "t.jsonl.errors.jsonl", "--json", "--server", scripted.url)
        assert rest.json()["created"] == 1_000
        assert len(scripted.timers) == 5_000

    def test_a_continued_import_adds_to_the_report(self, tocsin, scripted, tmp_path):
        bad = timer(3)
        del bad["callbackUrl"]
        (tmp_path / "t.jsonl").write_text(lines_of(timer(1), timer(2), bad))
        scripted.script = [problem(403, "FORBIDDEN", "not yours")]
        assert tocsin("timers", "import", "t.jsonl", "--server", scripted.url).code == 1
        report = tmp_path / "t.jsonl.errors.jsonl"
        assert tocsin("timers", "import", "t.jsonl", "--from-line", "3", "--server", scripted.url).code == 1
        assert [json.loads(line)["line"] for line in report.read_text().splitlines()] == [1, 2, 3, 3]
        # From the first line on it is another import, with a report of its own.
        assert tocsin("timers", "import", "t.jsonl", "--server", scripted.url).code == 1
        assert [json.loads(line)["line"] for line in report.read_text().splitlines()] == [3]

    def test_ctrl_c_reports_the_line_to_continue_from(self, tocsin, scripted, tmp_path, monkeypatch):
        (tmp_path / "t.jsonl").write_text(lines_of(*(timer(i) for i in range(5_000))))
        waited, wait = [], concurrent.futures.wait

        def interrupted(*arguments, **options):
            waited.append(arguments)
            if len(waited) == 2:
                raise KeyboardInterrupt
            return wait(*arguments, **options)

        monkeypatch.setattr("concurrent.futures.wait", interrupted)
        ran = tocsin("timers", "import", "t.jsonl", "--in-flight", "1", "--json", "--server", scripted.url)
        assert ran.code == 130
        # What was on its way is waited for, so that every line was either sent and answered or is named as unsent.
        assert (ran.json()["created"], ran.json()["unreadFromLine"]) == (2_000, 2_001)
        assert "--from-line 2001" in ran.err
        assert len(scripted.timers) == 2_000

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("t.csv", "id,when\na,b\n", "unknown columns when"),
            ("t.jsonl", None, "can't be read"),
        ],
    )
    def test_an_invalid_file_is_refused(self, tocsin, tmp_path, name, content, message):
        if content is not None:
            (tmp_path / name).write_text(content)
        ran = tocsin("timers", "import", name)
        assert ran.code == 2
        assert message in ran.err

    @pytest.mark.parametrize("name", ["t.jsonl", "t.csv"])
    def test_where_a_file_can_not_be_read_any_more_what_was_sent_is_accounted_for(
        self, tocsin, scripted, tmp_path, name
    ):
        rows = (
            [f"t{i},1h,{HOOK}\n" for i in range(2_500)]
            if name == "t.csv"
            else [lines_of(timer(i)) for i in range(2_500)]
        )
        head = "id,delay,callbackUrl\n" if name == "t.csv" else ""
        (tmp_path / name).write_bytes((head + "".join(rows)).encode() + b"\xff\xfe\n")
        scripted.script = [problem(403, "FORBIDDEN", "not yours")]
        ran = tocsin("timers", "import", name, "--in-flight", "2", "--json", "--server", scripted.url)
        assert ran.code == 1
        assert "is not UTF-8 text" in ran.err
        # Which of the two batches met the refusal is up to the threads; each line is in the report, created or unsent.
        unread = 2_001 + bool(head)
        assert (ran.json()["created"], ran.json()["failed"], ran.json()["unreadFromLine"]) == (1_000, 1_000, unread)
        assert f"--from-line {unread}" in ran.err
        assert len((tmp_path / f"{name}.errors.jsonl").read_text().splitlines()) == 1_000

    def test_a_file_that_can_not_be_read_from_its_beginning_is_wrong_usage(self, tocsin, tmp_path):
        (tmp_path / "t.jsonl").write_bytes(b"\xff\n")
        ran = tocsin("timers", "import", "t.jsonl")
        assert (ran.code, "is not UTF-8 text" in ran.err, "Created" in ran.err) == (2, True, False)

    def test_standard_input_is_read_as_utf_8_whatever_the_locale(self, tocsin, scripted, monkeypatch):
        # As Python opens it in the locale C.
        text = (lines_of(timer(1)) + "…").encode() + b"\xff\n"
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text), "ascii", errors="surrogateescape"))
        ran = tocsin("timers", "import", "-", "--server", scripted.url)
        assert (ran.code, "is not UTF-8 text" in ran.err) == (2, True), ran.err

    def test_invalid_csv_rows_name_their_line(self, tocsin, scripted, tmp_path):
        (tmp_path / "t.csv").write_text(f"id,delay,callbackUrl,payload\na,1s,{HOOK},nonsense\nb,1s,{HOOK},1,2,3\n")
        ran = tocsin("timers", "import", "t.csv", "--server", scripted.url)
        assert ran.code == 1
        assert "line 2: payload: 'nonsense' is not valid" in ran.err
        assert "line 3: has more cells" in ran.err


class TestRoundTrip:
    @pytest.mark.parametrize("form", ["csv", "jsonl"])
    def test_an_export_can_be_imported(self, tocsin, scripted, tmp_path, form):
        policy = {"maxAttempts": 3, "initialInterval": "2s"}
        payload = {"text": 'a "quoted", line\nand ünïcode', "n": 12345678901234567890}
        timers = [
            timer(
                i, payload=payload, tags=["x", "y"], retryPolicy=policy, expireAfter="15m", description="“A”, b",
                flowKey="customer:7", credential="billing", method="PUT", callbackTimeoutSeconds=2.5,
                onFailure={"url": HOOK, "headers": {"X-Team": "a, b"}}, onSuccess={"url": HOOK}, onRecovery={"url": HOOK},
            )
            for i in range(2_100)
        ]  # fmt: skip
        (tmp_path / "in.jsonl").write_text(lines_of(*timers))
        assert tocsin("timers", "import", "in.jsonl", "--server", scripted.url).code == 0
        before = dict(scripted.timers)
        out = tmp_path / f"out.{form}"
        ran = tocsin("timers", "export", "-o", out, "--tag", "x", "--server", scripted.url)
        assert ran.code == 0, ran.err
        assert "Exported 2,100 timers" in ran.err
        scripted.timers.clear()
        assert tocsin("timers", "import", out, "--server", scripted.url).code == 0
        assert scripted.timers == before

    @pytest.mark.parametrize(
        "tags", [["a;b", "c"], ['["x"]'], ["[x"], ["[1]", "y"], ["a;", 'q"'], ["x y", "z"]], ids=json.dumps
    )
    def test_a_csv_file_keeps_tags_whatever_their_characters(self, tocsin, scripted, tmp_path, tags):
        (tmp_path / "in.jsonl").write_text(lines_of(timer(1, tags=tags)))
        assert tocsin("timers", "import", "in.jsonl", "--server", scripted.url).code == 0
        assert tocsin("timers", "export", "-o", "out.csv", "--server", scripted.url).code == 0
        scripted.timers.clear()
        assert tocsin("timers", "import", "out.csv", "--server", scripted.url).code == 0
        assert scripted.timers["default", "t00001"]["tags"] == tags

    def test_every_field_of_a_create_is_a_column_or_belongs_to_the_request_alone(self):
        fields = {field.encode_name for field in msgspec.structs.fields(wire.CreateTimer)}
        shown = {field.encode_name for field in msgspec.structs.fields(wire.Timer)}
        assert fields - set(COLUMNS) == {"onConflict", "maxDelay", "collect", "idempotencyKey", "timerId"}
        assert shown - set(COLUMNS) <= READ_ONLY | {"explanation"}

    def test_a_csv_file_keeps_the_largest_body(self, tocsin, scripted, tmp_path):
        body = {"base64": base64.b64encode(bytes(100 * 1024)).decode(), "contentType": "application/octet-stream"}
        (tmp_path / "in.jsonl").write_text(lines_of(timer(1, body=body)))
        assert tocsin("timers", "import", "in.jsonl", "--server", scripted.url).code == 0
        before = dict(scripted.timers)
        assert tocsin("timers", "export", "-o", "out.csv", "--server", scripted.url).code == 0
        scripted.timers.clear()
        ran = tocsin("timers", "import", "out.csv", "--server", scripted.url)
        assert ran.code == 0, ran.err
        assert scripted.timers == before

    def test_finished_timers_are_imported_only_on_request(self, tocsin, scripted, tmp_path):
        done = timer(1, status="failed", attempts=3, lastError="HTTP_500", namespace="default")
        (tmp_path / "t.jsonl").write_text(lines_of(done, timer(2, status=None)))
        ran = tocsin("timers", "import", "t.jsonl", "--server", scripted.url)
        assert "skipped 1 finished ones" in ran.err
        assert ids(scripted) == ["t00002"]
        tocsin("timers", "import", "t.jsonl", "--include-finished", "--server", scripted.url)
        assert ids(scripted) == ["t00001", "t00002"]
        assert "lastError" not in scripted.timers["default", "t00001"]

    def test_export_to_standard_output(self, tocsin, scripted):
        tocsin("timers", "create", HOOK, "--in", "1h", "--id", "a", "--server", scripted.url)
        ran = tocsin("timers", "export", "--server", scripted.url)
        assert ran.json()["id"] == "a"
        assert tocsin("timers", "export", "--format", "csv", "--server", scripted.url).out.startswith("id,namespace,")


def test_export_of_all_namespaces_leaves_out_the_servers_own(tocsin, scripted):
    scripted.script = [answer({"namespaces": [{"name": "billing"}, {"name": "default"}, {"name": "tocsin.agent"}]})]
    assert tocsin("timers", "export", "--all-namespaces", "--server", scripted.url).code == 0
    asked = [json.loads(request.body).get("namespace") for request in scripted.received]
    assert asked == [None, "billing", "default"]
