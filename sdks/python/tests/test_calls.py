"""Tries, retries and deadlines, without a network."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone

import pytest
from tests.support.cases import each

from steps import BASE, World, problem, reply, timer
from tocsin_client import CreateTimer, errors
from tocsin_client._core import flows
from tocsin_client._core.batches import create_many
from tocsin_client._core.session import Options
from tocsin_client._generated.models import RequestSpec, ScheduleName, SubmitServiceCall, TimerName, UpdateTimer

LOST = errors.TransportError("reset", maybe_done=True)
UNSENT = errors.TransportError("refused", maybe_done=False)
UNAVAILABLE = problem(503, "SHARD_UNAVAILABLE", retry_after="1")
NAME = TimerName(namespace="n", timer_id="a")


def new_timer(**fields):
    return CreateTimer(namespace="n", id="a", callback_url="http://x/", **fields)


class TestCreate:
    def test_retries_have_the_same_key_and_only_the_first_try_declares_itself(self):
        world = World(LOST, UNAVAILABLE, reply(200, timer()))
        world.run(flows.create_timer(world.session, new_timer()))
        keys = [world.body(i)["idempotencyKey"] for i in range(3)]
        assert len(set(keys)) == 1 and uuid.UUID(keys[0]).version == 4
        assert [sent.headers.get("tocsin-first-try") for sent in world.sent] == ["1", None, None]

    def test_a_key_of_the_caller_is_sent_as_a_repetition(self):
        world = World(reply(200, timer()))
        world.run(flows.create_timer(world.session, new_timer(idempotency_key="mine")))
        assert world.body(0)["idempotencyKey"] == "mine"
        assert "tocsin-first-try" not in world.sent[0].headers

    def test_each_call_has_a_key_of_its_own(self):
        world = World(reply(200, timer()), reply(200, timer()))
        for _ in range(2):
            world.run(flows.create_timer(world.session, new_timer()))
        assert world.body(0)["idempotencyKey"] != world.body(1)["idempotencyKey"]

    def test_retries_send_what_is_left_of_the_delay(self):
        world = World(LOST, LOST, reply(200, timer()), request_s=3.0, uniform=1.0)
        world.run(flows.create_timer(world.session, new_timer(delay="1m")))
        assert [world.body(i)["delay"] for i in range(3)] == ["1m", "56s900ms", "53s700ms"]

    def test_a_delay_that_has_passed_is_zero(self):
        world = World(LOST, reply(200, timer()), request_s=3.0)
        world.run(flows.create_timer(world.session, new_timer(delay=timedelta(seconds=1))))
        assert world.body(1)["delay"] == "0s"

    def test_answers_keep_microseconds_and_ignore_unknown_members(self):
        world = World(reply(200, timer()))
        assert world.run(flows.create_timer(world.session, new_timer())).execute_at.microsecond == 1


class TestRetries:
    @each("status", [408, 429, 502, 503, 504])
    def test_repeated(self, status):
        world = World(problem(status, "X"), reply(200, timer()))
        world.run(flows.create_timer(world.session, new_timer()))
        assert world.slept == [0.05]

    @each("status", [400, 401, 403, 404, 409, 413, 500])
    def test_not_repeated(self, status):
        world = World(problem(status, "X"))
        with pytest.raises(errors.ApiError):
            world.run(flows.create_timer(world.session, new_timer()))

    def test_tries_until_the_time_is_over(self):
        world = World(*[UNSENT] * 40, uniform=1.0)
        with pytest.raises(errors.TransportError):
            world.run(flows.create_timer(world.session, new_timer()))
        # 17 pauses of 2 s are longer than what is left.
        assert world.slept == [0.1, 0.2, 0.4, 0.8, 1.6, *[2.0] * 13]

    def test_a_number_of_retries(self):
        world = World(*[LOST] * 4, retries=2)
        with pytest.raises(errors.TransportError):
            world.run(flows.create_timer(world.session, new_timer()))
        assert world.slept == [0.05, 0.1]

    def test_zero_retries_means_none(self):
        world = World(LOST, retries=0)
        with pytest.raises(errors.TransportError):
            world.run(flows.create_timer(world.session, new_timer()))

    def test_retry_after_is_the_shortest_pause(self):
        world = World(problem(429, "OVERLOADED", retry_after="2"), reply(200, timer()))
        world.run(flows.create_timer(world.session, new_timer()))
        assert world.slept == [2.5]

    def test_retry_after_beyond_the_deadline_raises_at_once(self):
        world = World(problem(429, "OVERLOADED", retry_after="40"))
        with pytest.raises(errors.Overloaded) as raised:
            world.run(flows.create_timer(world.session, new_timer()))
        assert (raised.value.retry_after, world.slept) == (40, [])

    def test_deadline_ends_the_call(self):
        world = World(LOST, LOST, request_s=15.0)
        with pytest.raises(errors.DeadlineExceeded) as raised:
            world.run(flows.create_timer(world.session, new_timer()))
        assert raised.value.maybe_done
        assert [round(sent.timeout_s, 2) for sent in world.sent] == [15.0, 14.95]
        assert [sent.connect_timeout_s for sent in world.sent] == [2.0, 2.0]

    def test_budget_bounds_the_retries_that_may_be_done_twice(self):
        world = World(*[LOST] * 200)
        for _ in range(30):
            with pytest.raises(errors.TransportError):
                world.run(flows.create_timer(world.session, new_timer(), Options(retries=5)))
        assert len(world.sent) == 30 + 100

    def test_retries_of_what_was_not_executed_are_free(self):
        world = World(*[UNSENT, problem(503, "NOT_READY"), problem(429, "OVERLOADED")] * 5, reply(200, timer()))
        world.session.budget.left = 0
        world.run(flows.create_timer(world.session, new_timer()))
        assert len(world.sent) == 16 and world.session.budget.left == 0

    def test_a_success_gives_back_what_its_retries_cost(self):
        world = World(LOST, LOST, reply(200, timer()), reply(200, timer()))
        world.session.budget.left = 500
        world.run(flows.create_timer(world.session, new_timer()))
        assert world.session.budget.left == 500
        world.run(flows.create_timer(world.session, new_timer()))
        assert world.session.budget.left == 501

    def test_what_is_not_safe_to_repeat_is_repeated_only_if_nothing_was_done(self):
        trigger = ScheduleName(namespace="n", schedule_id="a").to_json()
        for first, tries in ((LOST, 1), (UNAVAILABLE, 1), (UNSENT, 2), (problem(429, "OVERLOADED"), 2)):
            world = World(first, problem(404, "SCHEDULE_NOT_FOUND"))
            with pytest.raises(errors.TocsinError):
                world.run(flows.ask(world.session, "triggerSchedule", dict, trigger, safe=False))
            assert len(world.sent) == tries


class TestDelete:
    @each("refusal", [problem(404, "TIMER_NOT_FOUND"), problem(409, "TIMER_NOT_PENDING")])
    @each("found", [problem(404, "TIMER_NOT_FOUND"), reply(200, timer("canceled"))])
    def test_succeeds_if_only_the_answer_was_lost(self, refusal, found):
        world = World(LOST, refusal, found)
        assert world.run(flows.delete_timer(world.session, NAME)) is None

    def test_raises_if_the_timer_fired_instead(self):
        world = World(LOST, problem(409, "TIMER_NOT_PENDING"), reply(200, timer("completed")))
        with pytest.raises(errors.TimerNotPending):
            world.run(flows.delete_timer(world.session, NAME))

    def test_raises_if_no_answer_was_lost(self):
        world = World(UNSENT, problem(404, "TIMER_NOT_FOUND"))
        with pytest.raises(errors.TimerNotFound):
            world.run(flows.delete_timer(world.session, NAME))


def test_update_leaves_out_what_is_unset_and_sends_none_as_null():
    world = World(reply(200, timer()))
    world.run(flows.update_timer(world.session, UpdateTimer(namespace="n", timer_id="a", retry_policy=None)))
    assert world.body(0) == {"namespace": "n", "timerId": "a", "retryPolicy": None}


def test_service_calls_get_a_uuid_of_version_7():
    world = World(LOST, reply(202, {"serviceCallId": "x", "status": "Scheduled", "correlationId": "c"}))
    submission = SubmitServiceCall(name="s", request_spec=RequestSpec(method="GET", url="http://x/"))
    world.run(flows.submit_call(world.session, "t", submission))
    first, second = (world.body(i)["serviceCallId"] for i in range(2))
    assert first == second and uuid.UUID(first).version == 7 and uuid.UUID(first).variant == uuid.RFC_4122
    assert uuid.UUID(first).int >> 80 == 1_000_000


class TestWait:
    def test_polls_after_the_instant(self):
        world = World(*[reply(200, timer())] * 8, reply(200, timer("completed")))
        world.time = 4e9
        assert world.run(flows.wait_for_timer(world.session, NAME, None)).status == "completed"
        assert world.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]

    def test_sleeps_until_the_instant(self):
        world = World(reply(200, timer()), reply(200, timer("completed")))
        world.time = 1_801_396_790.000001  # ten seconds before
        world.run(flows.wait_for_timer(world.session, NAME, None))
        assert world.slept == pytest.approx([10])

    def test_the_moved_clock_of_a_test_server_counts(self):
        moved = reply(200, timer(), tocsin_now="2027-01-31T12:00:01Z")
        world = World(moved, reply(200, timer("completed")))
        world.run(flows.wait_for_timer(world.session, NAME, None))
        assert world.slept == [0.1]

    def test_timeout(self):
        world = World(*[reply(200, timer())] * 4)
        world.time = 4e9
        with pytest.raises(TimeoutError):
            world.run(flows.wait_for_timer(world.session, NAME, 0.5))
        assert sum(world.slept) == pytest.approx(0.5)

    def test_a_server_that_is_away_for_a_while(self):
        world = World(*[lambda _: UNSENT] * 150, reply(200, timer("completed")))
        world.time = 4e9
        assert world.run(flows.wait_for_timer(world.session, NAME, 3_600)).status == "completed"
        assert world.time - 4e9 > 60
        world = World(*[lambda _: UNSENT] * 150)
        with pytest.raises(errors.TransportError):
            world.run(flows.wait_for_timer(world.session, NAME, None))
        world = World(problem(404, "TIMER_NOT_FOUND"))
        with pytest.raises(errors.TimerNotFound):
            world.run(flows.wait_for_timer(world.session, NAME, 3_600))

    def test_a_server_that_hangs(self):
        def hanging(send):
            world.time += send.timeout_s
            return errors.TransportError("timed out", maybe_done=True)

        world = World(*[hanging] * 10)
        with pytest.raises(errors.WaitTimeout, match="timed out"):
            world.run(flows.wait_for_timer(world.session, NAME, 5))
        assert 5 <= world.time - 1_000 <= 7


class TestCreateMany:
    def answer(self, **by_id):
        """Creates each timer, but for those with an error's code."""

        def answered(send):
            import json

            results = []
            for item in json.loads(send.body)["timers"]:
                code = by_id.get(item["id"])
                error = {
                    "error": code,
                    "message": "m",
                    "status": 503 if code == "SHARD_UNAVAILABLE" else 400,
                    "errors": [],
                }
                results.append({"error": error} if code else {"timer": timer(timer_id=item["id"])})
            return reply(200, {"results": results})

        return answered

    def timers(self, number):
        return (CreateTimer(namespace="n", id=f"t{i}", callback_url="http://x/") for i in range(number))

    def test_chunks_and_results_in_order(self):
        world = World(*[self.answer()] * 3)
        results = world.run(create_many(world.session, self.timers(2_001)))
        assert [result.unwrap().id for result in results] == [f"t{i}" for i in range(2_001)]
        assert [len(world.body(i)["timers"]) for i in range(3)] == [1000, 1000, 1]

    def test_chunks_are_bounded_in_bytes(self):
        world = World(*[self.answer()] * 2)
        large = (
            CreateTimer(namespace="n", id=f"t{i}", callback_url="http://x/", payload="x" * 100_000) for i in range(90)
        )
        world.run(create_many(world.session, large))
        assert all(len(sent.body) <= 8 * 1024 * 1024 for sent in world.sent)
        assert sum(len(world.body(i)["timers"]) for i in range(2)) == 90

    def test_refused_timers_go_again_without_the_others(self):
        world = World(self.answer(t1="SHARD_UNAVAILABLE", t2="INVALID_INPUT"), self.answer())
        results = world.run(create_many(world.session, self.timers(3)))
        assert [result.timer is not None for result in results] == [True, True, False]
        assert isinstance(results[2].error, errors.InvalidInput)
        again = world.body(1)["timers"]
        assert [each["id"] for each in again] == ["t1"]
        assert again[0]["idempotencyKey"] == world.body(0)["timers"][1]["idempotencyKey"]
        assert [sent.headers.get("tocsin-first-try") for sent in world.sent] == ["1", None]

    def test_a_failed_request_is_the_result_of_its_timers(self):
        world = World(problem(500, "INTERNAL"), self.answer())
        results = world.run(create_many(world.session, self.timers(1_001)))
        assert {type(result.error) for result in results[:1000]} == {errors.Internal}
        assert results[1000].unwrap().id == "t1000"

    def test_retries_of_timers_end(self):
        world = World(*[self.answer(t0="SHARD_UNAVAILABLE")] * 4, retries=3)
        (result,) = world.run(create_many(world.session, self.timers(1)))
        assert isinstance(result.error, errors.ShardUnavailable) and len(world.sent) == 4

    def test_what_cannot_be_sent_is_the_error_of_its_timer(self):
        at = datetime(2027, 1, 31, tzinfo=timezone.utc)
        bad = [
            new_timer(payload={"at": at}),
            new_timer(execute_at=datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))),
            new_timer(execute_at=at.replace(tzinfo=None)),
            new_timer(delay=-1),
            new_timer(retry_policy={"max_tries": 3}),
            {"namespace": "n"},
            "n",
        ]
        world = World(self.answer())
        results = world.run(create_many(world.session, [new_timer(), *bad, new_timer()]))
        assert all(isinstance(each.error, errors.InvalidArgument) for each in results[1:-1])
        assert results[0].timer and results[-1].timer and len(world.body(0)["timers"]) == 2


def test_hook_may_add_headers_to_each_try():
    world = World(LOST, reply(200, timer()))
    world.session.on_request = lambda headers: headers.update(traceparent="00-1")
    world.run(flows.create_timer(world.session, new_timer()))
    assert [sent.headers["traceparent"] for sent in world.sent] == ["00-1"] * 2


def test_answers_that_are_not_of_a_tocsin_server():
    world = World(reply(200), reply(404))
    with pytest.raises(errors.ServerError, match="check that the URL"):
        world.run(flows.create_timer(world.session, new_timer()))
    with pytest.raises(errors.NotFound):
        world.run(flows.create_timer(world.session, new_timer()))


def test_url_and_key():
    world = World(reply(200, timer()))
    world.run(flows.create_timer(world.session, new_timer()))
    assert world.sent[0].url == f"{BASE}/api/v1/timers/create"
    assert world.sent[0].headers["authorization"] == "Bearer tk_1"
