"""The present code opens what each release has stored, reads every kind of record, and fires what is due."""

from __future__ import annotations

from pathlib import Path

import pytest
from standardwebhooks import Webhook

from tests.golden.content import BODY, DUE, HEADERS, SECRET, reads
from tests.golden.kept import DATA, SHARDS, VERSION, Kept, differences, opened
from tests.golden.stores import STORES
from tests.support.calls import Api, Inbox
from tests.support.cluster import STEADY
from tests.support.http import Receiver
from tests.support.server import ServerProcess
from tocsin.administration import unobserved
from tocsin.model.job import JobState
from tocsin.ports.store import FORMAT
from tocsin.server.transfer_records import RECORD_KINDS
from tocsin.server.transfer_rows import measured
from tocsin.timers.jobs import every_job


def refuse_other_format(name: str, format_: int) -> None:
    """Fails with the remedy if the data of a store were made with another FORMAT."""
    if format_ != FORMAT:
        pytest.fail(
            f"The golden data of {name} have format {format_} and FORMAT is {FORMAT}: before the first release, make them "
            "again with `.venv/bin/python -m tests.golden`; from it on FORMAT stays (ADR 81).",
            pytrace=False,
        )


@pytest.mark.parametrize(
    ("name", "release"), [(name, folder.name) for name in STORES for folder in sorted(DATA.glob("*"))]
)
async def test_what_a_release_stored_is_opened_read_and_fired(
    name: str, release: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = STORES[name]
    kept = Kept.read(DATA / release / f"{name}.json")
    refuse_other_format(name, kept.format)
    server = request.getfixturevalue(store.fixture) if store.fixture else None
    process = await store.restored(server, (DATA / release / store.file).read_bytes(), tmp_path)
    async with opened(process) as records:
        contents = await measured(records, SHARDS, 0, lambda rows: None)
        # Some time after its end the server removes it.
        (job,) = await every_job(records, unobserved)
        counts = {kind: len(await records.records(kind, limit=100)) for kind in RECORD_KINDS}
    assert job.state is JobState.COMPLETED
    live = contents.timers, contents.schedules, contents.notifications, contents.events
    assert all((*live, contents.history, contents.runs, contents.failures)), contents
    if release == VERSION:
        assert {kind for kind, count in counts.items() if not count} == store.without
    process.env |= STEADY
    await process.start()
    try:
        found = await reads(process, agent=store.agent)
        assert differences(kept.answers, found) == []
        await _fires(process)
    finally:
        assert await process.stop() == 0
    assert "damaged" not in process.log()


async def _fires(process: ServerProcess) -> None:
    """A due timer is called with all that was stored for it, its secrets too, and a schedule when it is triggered."""
    api, inbox = Api(process, HEADERS), Inbox()
    async with Receiver(inbox) as receiver:
        for path, name in (
            ("timers/update", DUE),
            ("schedules/update", {"namespace": "golden", "scheduleId": "yearly"}),
        ):
            status, answer = await api(path, **name, callbackUrl=receiver.url)
            assert status == 200, answer
        assert (await api("namespaces/update", name="held", paused=False))[0] == 200
        fired = (await inbox.count(1))[0]
        assert (fired.body["timerId"], fired.body["payload"]) == ("due", BODY)
        assert fired.headers["authorization"] == "Bearer a-token-of-the-receiver"
        assert fired.headers["x-plain"] == "seen"
        Webhook(SECRET).verify(fired.headers[":body"], fired.headers)
        assert (await api("schedules/trigger", namespace="golden", scheduleId="yearly"))[0] == 200
        # The timer may be called again: a busy machine may lose a shard before it has recorded a call.
        calls = await inbox.wait(lambda calls: any(each.body["timerId"] == "yearly" for each in calls))
        fired = next(each for each in calls if each.body["timerId"] == "yearly")
        assert fired.body["payload"] == BODY
        assert fired.headers["x-api-key"] == "of-the-schedule"


@pytest.mark.parametrize("name", STORES)
def test_the_present_release_has_data_of_each_store(name: str) -> None:
    files = (DATA / VERSION / STORES[name].file, DATA / VERSION / f"{name}.json")
    missing = [str(path) for path in files if not path.is_file()]
    assert not missing, "make them with `.venv/bin/python -m tests.golden`"


def test_what_is_missing_or_changed_would_be_found() -> None:
    kept = {"a": [{"b": 1, "inFlight": 0}], "c": "d"}
    assert differences(kept, {"a": [{"b": 1, "inFlight": 3, "new": 2}], "c": "d"}) == []
    assert differences(kept, {"a": [{"b": 2}], "c": "d"}) == [".a[0].b: 1 was kept, 2 is answered"]
    assert differences(kept, {"a": []}) == [
        ".a: [{'b': 1, 'inFlight': 0}] was kept, [] is answered",
        ".c: 'd' was kept, '(missing)' is answered",
    ]


def test_data_of_another_format_fail_with_the_remedy() -> None:
    refuse_other_format("sqlite", FORMAT)
    with pytest.raises(pytest.fail.Exception, match=r"make them again with `\.venv/bin/python -m tests\.golden`"):
        refuse_other_format("sqlite", FORMAT - 1)
