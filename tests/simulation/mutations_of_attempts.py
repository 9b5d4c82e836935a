"""Attempts: their verdicts, destinations that are busy, requests that were not sent, hand-over, expiry (rules 14, 24, 25,
27)."""

from __future__ import annotations

from .mutation import mutation
from .mutation_operators import always, drop, leave_out, narrow, never, replace, rewrite

WINDOW = "tocsin.timers.engine.window:Window."
DISPATCHER = "tocsin.timers.engine.dispatcher:Dispatcher."
ATTEMPT = "tocsin.timers.engine.attempt:Attempt."
_RARE = "tests/simulation/test_rare_interleavings.py::"
_EXPIRY = "tests/simulation/test_expiry.py::"
_CONCLUDE = "tocsin.timers.engine.attempt:conclude"
_CONCLUDE_EXPIRED = "tocsin.timers.engine.attempt:conclude_expired"
_LATENESS = "tests/simulation/test_lateness.py::"
_WINDOW = "tests/unit/test_window.py::"
_WITHOUT = "test_timers_wait_for_their_credential_without_attempts_while_others_of_the_host_are_on_time"
_REFUSED = "test_refused_timer_is_suspended_and_fires_after_a_claim_with_other_settings"


MUTATIONS = [
    mutation(
        "a failed attempt completes its timer",
        0,
        replace(_CONCLUDE, "Status.FAILED", by="Status.COMPLETED"),
    ),
    mutation("a failed attempt is the last one", 0, always(_CONCLUDE, "verdict.final")),
    mutation(
        "one attempt fewer than the policy allows",
        0,
        replace("tocsin.model.retry:next_attempt_at", "policy.max_attempts", by="policy.max_attempts - 1"),
    ),
    mutation(
        "suspended timers are forgotten",
        14,
        replace("tocsin.timers.engine.loader:sweep", "suspended.found | suspended.recent", by="suspended.found"),
    ),
    mutation(
        "deferred timers of a hung host fill the window",
        14,
        replace("tocsin.timers.engine.admission:DEFERRED_PART", "4", by="1"),
        caught_by=_LATENESS + "test_healthy_timers_are_on_time_beside_a_hung_host",
    ),
    mutation(
        "idle destinations are never forgotten",
        0,
        drop("tocsin.timers.engine.admission:Admission.forget_idle", "del self.destinations[...]"),
        caught_by="tests/simulation/test_lateness.py::test_destinations_that_do_not_answer_are_forgotten",
    ),
    mutation(
        "a destination whose last deferred timer is gone is never forgotten",
        0,
        drop(DISPATCHER + "fire_first", "self.admission.settle"),
        caught_by=_RARE + "test_destination_is_forgotten_when_its_last_deferred_timer_is_canceled",
    ),
    mutation(
        "a request that was not sent counts",
        24,
        never(ATTEMPT + "ended", "NotSent"),
        caught_by=_LATENESS + "test_unsent_attempt_is_repeated_soon_and_not_counted",
    ),
    mutation(
        "a timer whose request was not sent is forgotten",
        24,
        drop(WINDOW + "not_sent", "self._add"),
        caught_by=_LATENESS + "test_unsent_attempt_is_repeated_soon_and_not_counted",
    ),
    mutation(
        "a timer whose request was not sent returns although it was overwritten",
        24,
        leave_out(WINDOW + "not_sent", "attempt.stale"),
    ),
    mutation(
        "a refused address counts as an attempt",
        24,
        narrow(ATTEMPT + "ended", "NotSent", and_="not isinstance(outcome, Refused)"),
        caught_by=_LATENESS + _REFUSED,
    ),
    mutation(
        "a timer whose address is refused is tried again at once",
        24,
        drop(WINDOW + "not_sent", "self.suspend"),
        caught_by=_LATENESS + _REFUSED,
    ),
    mutation(
        "a timer whose address is refused is never tried again",
        24,
        drop("tocsin.timers.engine.loader:_retry_refused", "suspended.refused_rounds"),
        caught_by=_LATENESS + _REFUSED,
    ),
    mutation(
        "refused timers are resumed without end",
        24,
        drop("tocsin.timers.engine.loader:sweep", "suspended.refused_rounds"),
        caught_by=_LATENESS + _REFUSED,
    ),
    mutation(
        "a request without its credential has its destination back off",
        24,
        never(ATTEMPT + "_suspended_for", "NoCredential"),
        caught_by=_LATENESS + _WITHOUT,
    ),
    mutation(
        "timers without a credential are resumed before it can be sent",
        24,
        replace("tocsin.timers.engine.resuming:room_for", "not context.credential_gate.obstacle(*found)", by="True"),
        caught_by=_LATENESS + _WITHOUT,
    ),
    mutation(
        "timers without a credential are not resumed when it can be sent",
        24,
        replace("tocsin.timers.engine.resuming:room_for", "not context.credential_gate.obstacle(*found)", by="False"),
        caught_by=_LATENESS + _WITHOUT,
    ),
    mutation(
        "the result of a handed-over attempt is forgotten",
        25,
        drop(ATTEMPT + "_record", "self._dispatcher.results.send"),
        caught_by=_RARE + "test_result_of_a_handed_over_attempt_reaches_the_new_owner",
    ),
    mutation(
        "the result of a handed-over attempt applies to any generation",
        25,
        narrow(
            "tocsin.timers.engine.assembly:Assembly._resolve", "present.generation", and_="kind is not OpKind.CONCLUDE"
        ),
        caught_by=_WINDOW + "test_handed_over_result_is_ignored_after_the_timer_changed",
    ),
    mutation(
        "a node that stops as the last one leaves its results to nobody",
        25,
        leave_out("tocsin.timers.engine.ownership:Ownership._may_use", "self._results.pending"),
    ),
    mutation(
        "a node that stops does not wait for the others' announcements",
        0,
        rewrite("tocsin.timers.engine.supervisor:Supervisor.leave", "asyncio.sleep", to="return"),
    ),
    mutation(
        "whether a timer has expired is only checked when it is created",
        27,
        always("tocsin.timers.engine.attempt:end_expired", "conclusion is None"),
    ),
    mutation(
        "a deferred timer fires however late it is",
        27,
        never(DISPATCHER + "_may_fire_still", "now > expires_at"),
        caught_by=_EXPIRY + "test_deferred_timer_expires_while_its_destination_is_busy",
    ),
    mutation(
        "a retry is planned for after the timer has expired",
        27,
        never(_CONCLUDE, "again_at > limit"),
        caught_by=_EXPIRY + "test_retry_that_would_begin_too_late_is_not_planned",
    ),
    mutation(
        "a timer has expired although an attempt was made",
        27,
        replace(_CONCLUDE_EXPIRED, "Status.FAILED", by="Status.EXPIRED"),
    ),
    mutation(
        "a timer has expired although it was handed over with an attempt in flight",
        27,
        never(_CONCLUDE_EXPIRED, "row.key[0] != timer.execute_at"),
        caught_by=_EXPIRY + "test_timer_whose_attempt_was_handed_over_and_lost_has_failed",
    ),
    mutation(
        "an expired timer ends although a client is about to move it",
        27,
        rewrite(
            WINDOW + "end_unfired",
            to="self._attempts.end(self.dispatch(row))\nself._conclude(row, conclusion, boot_us)",
        ),
        caught_by=_EXPIRY + "test_update_before_the_end_of_an_expired_timer_sets_a_new_limit",
    ),
    mutation(
        "a timer of a paused namespace expires",
        27,
        never(DISPATCHER + "_fire_or_defer", "namespace.held"),
        caught_by=_EXPIRY + "test_timer_of_a_paused_namespace_ends_when_it_is_resumed",
    ),
]
