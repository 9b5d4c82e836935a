"""What the response to a batch means for each timer."""

from __future__ import annotations

import msgspec
import pytest
from tests.support.cases import each

from tocsin.model.answer import Done, Failed, MissingResult, NoResponse, Reschedule, Response, Verdict, judge
from tocsin.model.batch_answer import item_responses

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
    }
    response = of(*({"webhookId": name, **result} for name, result in results.items()))
    found = {name: verdict(each, strict=strict) for name, each in item_responses(response, results).items()}
    assert found["plain"] == found["ok"] == Done()
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
