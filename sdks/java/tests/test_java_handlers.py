"""What a thread's interrupt and a handler's error change: no job, no result of a job, and no other callback of a batch."""

from __future__ import annotations

import json

import pytest
from test_java_docs import jars  # noqa: F401 - a fixture
from test_java_transports import classpath, run  # noqa: F401 - a fixture
from tocsin_client.testing import firing, sign

# Building takes a while on a slow machine.
pytestmark = pytest.mark.timeout(300)


def test_an_interrupt_takes_nothing_from_a_monitored_job(classpath):  # noqa: F811
    printed = run(classpath, program="Interrupted")
    assert printed[:4] == ["start", "success", "interrupted before: true", "interrupted after: true"]
    assert printed[4:8] == ["start", "success", "result", "interrupted after: true"]
    assert printed[8:] == ["start", "fail", "of the job", "interrupted after: true"]


def responded(classpath, *payloads):  # noqa: F811
    """The results by payload, or what the receiver threw."""
    items = []
    for payload in payloads:
        request = sign(firing(payload, payload=payload), "whsec_a2V5MQ==")
        items.append({"webhookId": request.headers["webhook-id"], **json.loads(request.body)})
    (line,) = run(classpath, json.dumps({"items": items}), program="Batches")
    if not line.startswith("{"):
        return line
    found = {each["webhookId"]: each for each in json.loads(line)["items"]}
    return [found[item["webhookId"]] for item in items]


def test_an_error_of_a_handler_takes_no_other_callback_of_its_batch_along(classpath):  # noqa: F811
    short, *failed, long = responded(classpath, "short", "assertion", "stack", "long" * 300)
    assert [each["status"] for each in failed] == [500, 500]
    assert (short["reason"], long["reason"]) == ("ä" * 200, "ä" * 199 + "…")
    assert responded(classpath, "short", "memory") == "of all"


def test_a_row_that_is_refused_for_the_moment_is_no_server_that_is_away(tmp_path, classpath):  # noqa: F811
    printed = run(classpath, program="RefusedRow", url=f"jdbc:sqlite:{tmp_path / 'app.db'}")
    assert printed == ["Drained[created=0, dead=0, waiting=1, unavailable=null]"]


def test_a_later_timer_of_a_name_never_overtakes_an_earlier_one(classpath):  # noqa: F811
    assert run(classpath, program="dev.tocsin.client.Queues") == ["a old", "a new", "b"]


def test_a_drain_that_is_stopped_leaves_its_rows_to_others(tmp_path, classpath):  # noqa: F811
    assert run(classpath, program="StoppedDrain", url=f"jdbc:sqlite:{tmp_path / 'app.db'}") == ["due: true"]
