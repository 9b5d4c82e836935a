"""The clock that `tocsin dev` moves: steps, what they wait for, and what a move must not disturb."""

from __future__ import annotations

from .mutation import mutation
from .mutation_operators import drop, leave_out, never, replace, rewrite

CLOCK = "tocsin.server.clock_mover:DevClock."
REST = "tocsin.timers.engine.supervisor:EngineRest."
_FLOWS = "tests/integration/server/test_movable_clock.py::"
_MOVES = "tests/integration/server/test_clock_mover.py::"
_LIMITS = "tests/integration/server/test_movable_clock_flows.py::"
_HOURS = _FLOWS + "test_three_days_of_a_timer_that_is_rescheduled_each_hour_pass_in_a_moment"


MUTATIONS = [
    mutation("a step is a jump", 0, never(CLOCK + "advance", "mode"), caught_by=_HOURS),
    mutation(
        "a step does not wait for the answers",
        0,
        rewrite(CLOCK + "_at_rest", to="return self.clock.now_us()"),
        caught_by=_HOURS,
    ),
    mutation(
        "a step does not wait for results to be durable",
        0,
        drop(REST + "_busy", "has_work"),
        caught_by=_MOVES + "test_what_was_answered_is_durable_before_the_clock_goes_on",
    ),
    mutation(
        "a service call's due time is passed over",
        0,
        leave_out(CLOCK + "_next_due_us", "self._agent_due_us"),
        caught_by=_FLOWS + "test_a_service_call_due_tomorrow_and_its_retries",
    ),
    mutation(
        "the limits of flows stay behind the clock",
        0,
        replace("tocsin.timers.engine.context:Context.flow_time_us", "self.moved_us", by="0"),
        caught_by=_LIMITS + "test_timers_leave_at_the_rate_of_their_flow",
    ),
    mutation(
        "the instant at which a limit opens is passed over",
        0,
        replace(REST + "next_due_us", "self._flow_opens_in_us()", by="None"),
        caught_by=_LIMITS + "test_timers_leave_at_the_rate_of_their_flow",
    ),
    mutation(
        "the clock halts at looks that find nothing",
        0,
        rewrite("tocsin.timers.engine.watching:needed_at_us", to="return at_us"),
        caught_by=_MOVES + "test_a_monitor_of_a_nightly_schedule_adds_a_few_steps_a_night_and_reports_in_time",
    ),
    mutation(
        "a heartbeat may be under way during a move",
        12,
        rewrite("tocsin.timers.engine.lease:NodeLease.move_clock", to="move()"),
        caught_by=_MOVES + "test_the_clock_waits_for_a_heartbeat_before_it_moves",
    ),
]
