"""The queue of the audit export: nobody waits for a destination, and what it misses is announced; lines stay whole."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.support.patience import PATIENCE_S

from tocsin.model.audit import AuditSource
from tocsin.ports.audit import Actor
from tocsin.telemetry.audit_export import AuditExportOptions, Exports, Record, open_exports

_ACTOR = Actor("k", "192.0.2.1", AuditSource.API, "shop")


class _SlowSink:
    """Takes nothing until it is `open`; `full` once it has taken as much as waits at most."""

    name = "slow"

    def __init__(self) -> None:
        self.open, self.asked, self.full = threading.Event(), threading.Event(), threading.Event()
        self.taken: list[Record] = []
        self.batches: list[int] = []
        self.closed = False

    def send(self, records: Sequence[Record]) -> None:
        self.asked.set()
        assert self.open.wait(PATIENCE_S)
        self.taken += records
        self.batches.append(len(records))
        if len(self.taken) >= 10_000:
            self.full.set()

    def close(self) -> None:
        self.closed = True


def test_what_a_slow_destination_misses_is_counted_and_announced_where_it_is_missing() -> None:
    sink, dropped = _SlowSink(), list[str]()
    exports = Exports([sink], "node", dropped.append)
    for number in range(10_300):
        exports.changed("timers/create", _ACTOR, "default", [str(number)])
    assert sink.asked.wait(PATIENCE_S)
    # Nothing has waited for it.
    assert sink.taken == []
    assert dropped == ["slow"] * 300
    # As long as there is no room, there is none for an announcement.
    exports.announce()
    sink.open.set()
    assert sink.full.wait(PATIENCE_S)
    exports.changed("timers/create", _ACTOR, "default", ["later"])
    exports.close()
    assert sink.closed
    assert [each.kind for each in sink.taken] == ["change"] * 10_000 + ["dropped", "change"]
    assert [each.ids for each in sink.taken[:10_000]] == [[str(number)] for number in range(10_000)]
    assert sink.taken[10_000].records == 300
    assert sink.taken[10_001].ids == ["later"]


def test_many_ids_count_as_many_records() -> None:
    sink, dropped = _SlowSink(), list[str]()
    exports = Exports([sink], "node", dropped.append)
    for number in range(1_010):
        exports.changed("timers/batch/create", _ACTOR, "default", [f"{number}-{id}" for id in range(100)])
    assert dropped == ["slow"] * 10
    sink.open.set()
    exports.close()
    assert [each.kind for each in sink.taken[:1_000]] == ["change"] * 1_000
    # A request stays as short as one of many records with few ids.
    assert max(sink.batches) == 50


def test_what_was_dropped_is_announced_even_if_nothing_follows() -> None:
    sink = _SlowSink()
    exports = Exports([sink], "node", lambda name: None)
    for number in range(10_001):
        exports.changed("timers/create", _ACTOR, "default", [str(number)])
    sink.open.set()
    assert sink.full.wait(PATIENCE_S)
    exports.announce()
    exports.close()
    assert (sink.taken[-1].kind, sink.taken[-1].records) == ("dropped", 1)


def test_many_ids_are_several_records(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    exports = open_exports(AuditExportOptions(file=str(path)), "node", lambda name: None)
    assert exports is not None
    ids = [str(number) for number in range(250)]
    exports.changed("timers/batch/create", _ACTOR, "default", ids)
    exports.close()
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [len(each["ids"]) for each in found] == [100, 100, 50]
    assert [id for each in found for id in each["ids"]] == ids
    assert found[0] | {"ids": [], "at": ""} == {
        "at": "", "kind": "change", "node": "node", "action": "timers/batch/create", "keyId": "k", "name": "shop",
        "source": "api", "address": "192.0.2.1", "scope": "default", "ids": [],
    }  # fmt: skip


#: In a process of its own, because the limit is one of the process.
_FULL_DISK = """
    import json, resource, sys, time
    from tocsin.model.audit import AuditSource
    from tocsin.ports.audit import Actor
    from tocsin.telemetry.audit_export import AuditExportOptions, open_exports

    path = sys.argv[1]
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    exports = open_exports(AuditExportOptions(file=path), "node", print)
    for number in range(20):
        exports.changed("timers/create", Actor(None, "", AuditSource.API), "default", [f"t{number}"])
    while len(open(path, "rb").read()) < 1_000:
        time.sleep(0.01)
    assert not open(path, "rb").read().endswith(b"\\n")
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    exports.changed("timers/create", Actor(None, "", AuditSource.API), "default", ["last"])
    exports.close()
    found = [json.loads(line)["ids"][0] for line in open(path)]
    assert found == [*(f"t{number}" for number in range(20)), "last"], found
"""


def test_lines_stay_whole_on_a_disk_that_is_full_for_a_while(tmp_path: Path) -> None:
    program = [sys.executable, "-c", textwrap.dedent(_FULL_DISK), str(tmp_path / "audit.jsonl")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
