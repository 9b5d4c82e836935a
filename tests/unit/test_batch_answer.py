"""What the response to a batch means for each timer."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.support.cases import each

from tocsin.model import batch_answer
from tocsin.model.answer import Done, Failed, MissingResult, NoResponse, Reschedule, Response, Verdict, judge
from tocsin.model.batch_answer import RESULTS_FOR_EACH, item_responses

NOW_US = 1_790_000_000_000_000


def verdict(outcome: Response | NoResponse, *, strict: bool = False) -> Verdict:
    return judge(
        outcome,
        now_us=NOW_US,
        retry_after_us_max=3_600_000_000,
        instant_us_max=NOW_US * 2,
        payload_bytes_max=1_000,
        payload_depth_max=10,
        strict=strict,
    )


def of(*results: object, status: int = 200) -> Response:
    return Response(status, msgspec.json.encode({"items": results}))


@pytest.mark.parametrize("strict", [False, True])
def test_a_result_means_what_a_single_response_means(strict: bool) -> None:
    results = {
        "plain": {"status": 200},
        "ok": {"status": 204, "ok": True},
        "not ok": {"status": 200, "ok": False},
        "busy": {"status": 503, "retryAfter": 60},
        "gone": {"status": 410, "reason": "why"},
        "later": {"status": 200, "nextExecuteAt": "2026-09-21T15:00:00Z", "payload": {"n": 1}},
        "never": {"status": 200, "nextExecuteAt": "soon"},
        # As a serializer sends members that are empty.
        "null": {"status": 200, "ok": None, "nextExecuteAt": None, "payload": None, "retryAfter": None},
        "null, later": {"status": 200, "ok": None, "nextExecuteAt": "2026-09-21T15:00:00Z"},
    }
    response = of(*({"webhookId": name, **result} for name, result in results.items()))
    found = {name: verdict(each, strict=strict) for name, each in item_responses(response, results).items()}
    assert found["plain"] == found["ok"] == found["null"] == Done()
    assert isinstance(found["null, later"], Reschedule)
    assert found["not ok"] == Failed("CALLBACK_NOT_OK: the receiver answered ok: false")
    assert found["busy"] == Failed("HTTP_503", not_before_us=NOW_US + 60_000_000)
    assert found["gone"] == Failed("HTTP_410", final=True)
    assert isinstance(found["later"], Reschedule)
    assert bytes(found["later"].payload or b"") == b'{"n":1}'
    assert isinstance(found["never"], Failed)
    assert not found["never"].final


def test_results_come_in_any_order_and_the_first_of_several_counts() -> None:
    response = of(
        {"webhookId": "b", "status": 500},
        {"webhookId": "foreign", "status": 500},
        {"webhookId": "a", "status": 200},
        {"webhookId": "a", "status": 404},
    )
    found = item_responses(response, ["a", "b"])
    assert {name: each.status for name, each in found.items()} == {"a": 200, "b": 500}


@each(
    "result",
    [
        {"webhookId": "a"},
        {"webhookId": "a", "status": "200"},
        {"webhookId": "a", "status": 99},
        {"webhookId": "a", "status": 200, "retryAfter": -1},
        {"status": 200},
        17,
        None,
    ],
)
def test_an_unreadable_result_concerns_its_timer_only(result: object) -> None:
    found = item_responses(of(result, {"webhookId": "b", "status": 200}), ["a", "b"])
    assert found["b"] == Response(200)
    assert isinstance(found["a"], MissingResult)
    assert verdict(found["a"]) == Failed("NO_RESULT: the response to the batch has no result for this timer")


@each(
    "response",
    [
        Response(200),
        Response(204),
        Response(200, b"OK"),
        Response(200, b"[]"),
        Response(200, b'{"items":{}}'),
        Response(200, b'{"items":[{"webhookId":"a","status":200}]}', truncated=True),
        Response(200, b'{"items":[{"webhookId":"\xff","status":200}]}'),
        of({"webhookId": "a", "status": 200}, status=500),
        Response(400),
        Response(404),
        Response(429, b"", "60"),
    ],
)
def test_a_response_that_is_not_2xx_with_results_is_a_failed_attempt_that_is_retried(response: Response) -> None:
    found = verdict(item_responses(response, ["a"])["a"])
    assert isinstance(found, Failed)
    assert not found.final
    assert found.error.partition(":")[0] == ("NO_RESULT" if response.status < 300 else f"HTTP_{response.status}")
    assert (found.not_before_us is not None) == (response.retry_after is not None)


MANY = 500_000


def counting(function: Callable[[Any], Any], calls: list[object]) -> Callable[[Any], Any]:
    def counted(value: Any) -> Any:
        calls.append(value)
        return function(value)

    return counted


@each(
    "element",
    [b"0", b"[]", b"{}", b'{"webhookId":"a"}', b'{"webhookId":"x","status":200}', b'{"webhookId":"x","status":500}'],
)
def test_of_more_results_than_were_asked_for_only_the_first_are_decoded(
    element: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[object] = []
    for name in ("_decode_result", "_is_acceptance"):
        monkeypatch.setattr(batch_answer, name, counting(getattr(batch_answer, name), decoded))
    ids = [f"msg_{number}" for number in range(32)]
    body = b'{"items":[%b]}' % b",".join([element] * MANY)
    item_responses(Response(200, body), ids)  # The decoders are made once.
    decoded.clear()
    tracemalloc.start()
    try:
        found = item_responses(Response(200, body), ids)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert set(map(type, found.values())) == {MissingResult}
    # Each is looked at when all are read together, again by itself, and once more to see what it means.
    assert len(decoded) <= 3 * RESULTS_FOR_EACH * len(ids)
    assert held < 100_000


def test_what_comes_before_a_result_may_be_as_much_again() -> None:
    foreign = {"webhookId": "foreign", "status": 500}
    results = [foreign, foreign, {"webhookId": "a", "status": 200}, {"webhookId": "b", "status": 200}]
    assert item_responses(of(*results), ["a", "b"]) == {"a": Response(200), "b": Response(200)}
    found = item_responses(of(foreign, *results), ["a", "b"])
    assert found["a"] == Response(200)
    assert isinstance(found["b"], MissingResult)


def test_no_result_is_read_behind_the_last_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    response = of({"webhookId": "a", "status": 500}, {"webhookId": "b", "status": 500}, *[{"webhookId": "a"}] * 2)
    read: list[object] = []
    monkeypatch.setattr(batch_answer, "_decode_result", counting(batch_answer._decode_result, read))
    assert {each.status for each in item_responses(response, ["a", "b"]).values()} == {500}
    assert len(read) == 2
