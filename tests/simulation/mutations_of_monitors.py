"""Monitors: no alarm because of our own outages, and none that is lost (rule 33)."""

from __future__ import annotations

from .mutation import Mutation, mutation
from .mutation_operators import Edit, always, leave_out, never, replace, rewrite

_MONITORING = "tocsin.timers.engine.monitoring:"
_WATCHING = "tocsin.timers.engine.watching:"
_LOOKS = "tocsin.timers.engine.schedule_looks:"
_TENURES = "tocsin.timers.engine.tenures:Tenures."
_TESTS = "tests/unit/test_monitoring.py::"
_WATCHING_TESTS = "tests/unit/test_watching.py::"
_WATCHED_RUN = "tests/simulation/test_monitors.py::test_schedules_are_late_when_they_are_and_not_when_nodes_are_away"
_TENURES_TESTS = "tests/unit/test_tenures.py::"


def _monitored(name: str, *edits: Edit, caught_by: str) -> Mutation:
    return mutation(name, 33, *edits, caught_by=caught_by)


MUTATIONS = [
    _monitored(
        "a deadline stays where it is after an outage",
        rewrite(_MONITORING + "_moved", to="return None"),
        caught_by=_TESTS + "test_outage_moves_the_deadline_and_excuses_a_later_report",
    ),
    _monitored(
        "a period whose report may be lost is late",
        never(_MONITORING + "overdue", "state.excused_from is not None and definition.every_us is None"),
        caught_by=_TESTS + "test_period_whose_report_may_be_lost_notifies_nobody_and_the_next_one_does",
    ),
    _monitored(
        "a hand-over excuses",
        always(_MONITORING + "_moved", "each.lossy"),
        caught_by=_TESTS + "test_hand_over_moves_the_deadline_but_excuses_nothing",
    ),
    _monitored(
        "an interval is not extended by a lost report",
        never(_MONITORING + "_moved", "lossy and definition.every_us is not None"),
        caught_by=_TESTS + "test_by_an_interval_a_lost_report_is_followed_by_another_within_it",
    ),
    _monitored(
        "outages that overlap are summed",
        replace(_MONITORING + "_moved", "max(each.from_us, until)", by="max(each.from_us, begin)"),
        caught_by=_TESTS + "test_outages_that_overlap_count_once",
    ),
    _monitored(
        "the instants of an outage are excused one by one",
        always(_MONITORING + "_excused", "last == first"),
        caught_by=_TESTS + "test_instants_of_a_long_outage_are_excused_at_once",
    ),
    _monitored(
        "a report knows of no outage",
        rewrite(_MONITORING + "_lossy", to="return []"),
        caught_by=_TESTS + "test_report_excuses_only_what_outages_may_have_lost",
    ),
    _monitored(
        "the last period of an outage is late by a report",
        replace(_MONITORING + "_ended_by", "_excused_by(own, during[0]) if during else own", by="own"),
        caught_by=_TESTS + "test_report_and_alarm_judge_the_last_period_of_an_outage_alike",
    ),
    _monitored(
        "a hand-over after an outage excuses what was missed between them",
        never(_MONITORING + "_lossy", "each.from_us <= excuse.until_us and each.until_us >= excuse.from_us"),
        caught_by=_TESTS + "test_hand_over_later_than_an_outage_excuses_none_of_what_was_missed",
    ),
    _monitored(
        "a forgotten outage excuses nothing",
        never(_MONITORING + "_lossy", "state.excused_from is not None"),
        caught_by=_TESTS + "test_excuse_stays_though_the_shard_has_forgotten_its_outage",
    ),
    _monitored(
        "instants during a run are missed though its end may be lost",
        replace(
            _MONITORING + "_ended_by",
            "passed.judge(rule.after(first) or latest, latest + 1, lossy)",
            by="passed.judge(rule.after(first) or latest, latest + 1, ())",
        ),
        caught_by=_TESTS + "test_instants_during_a_run_are_excused_as_its_end_may_be_lost",
    ),
    _monitored(
        "an early report is not lost in an outage",
        replace(_MONITORING + "_Unreported.judge", "each.until_us + self._early", by="each.until_us"),
        caught_by=_TESTS + "test_a_report_may_have_come_early_in_an_outage",
    ),
    _monitored(
        "a job that was late is excused",
        replace(
            _MONITORING + "_Unreported.judge_open",
            "each.from_us < state.deadline and state.status is not MonitorStatus.LATE",
            by="each.from_us < state.deadline + 100 * self._definition.grace_us",
        ),
        caught_by=_TESTS + "test_a_longer_grace_excuses_no_job_that_was_late",
    ),
    _monitored(
        "a report that had to wait is late",
        never(_MONITORING + "_period", "in_time and at_us <= state.deadline"),
        caught_by=_TESTS + "test_a_report_that_had_to_wait_is_in_time",
    ),
    _monitored(
        "a claim is not recorded by the next heartbeat",
        never(_TENURES + "keep", "self._changes != self._written_changes"),
        caught_by=_TENURES_TESTS + "test_owner_that_dies_soon_after_its_claim_is_known_to_have_worked",
    ),
    _monitored(
        "the outage before a claim is unknown",
        rewrite(_TENURES + "claimed", to="return ()"),
        caught_by=_TENURES_TESTS + "test_next_owner_knows_since_when_nobody_worked_and_what_was_before",
    ),
    _monitored(
        "an occurrence is late although its shard had no owner",
        replace(_WATCHING + "_until", "max(each.until_us - max(each.from_us, until), 0)", by="0"),
        caught_by=_WATCHING_TESTS + "test_outage_of_the_schedules_shard_moves_the_deadline_and_excuses",
    ),
    _monitored(
        "an occurrence is late before its outage is known",
        leave_out(_WATCHING + "watched", "seen.known_until >= found.deadline"),
        caught_by=_WATCHING_TESTS + "test_nothing_is_late_while_nobody_knows_whether_its_shard_had_an_owner",
    ),
    _monitored(
        "a look before an occurrence's deadline finds it late afterwards",
        replace(
            _WATCHING + "watched",
            "seen.at >= found.deadline + _SETTLED_US",
            by="now_us >= found.deadline + _SETTLED_US",
        ),
        caught_by=_WATCHING_TESTS + "test_look_that_began_before_the_deadline_decides_nothing",
    ),
    _monitored(
        "an instant that another one overtook is forgotten",
        never(_WATCHING + "_open", "_missed(current) > before.missed"),
        caught_by=_WATCHING_TESTS + "test_instant_that_was_overtaken_is_late_although_the_row_moves_on",
    ),
    _monitored(
        "runs that have ended between two looks are not read",
        rewrite(_LOOKS + "_decoded", to="return None"),
        caught_by=_WATCHED_RUN,
    ),
    _monitored(
        "the outages of a schedule's shard are unknown to another node",
        rewrite(_TENURES + "of", to="return (), self._context.clock.now_us()"),
        caught_by=_WATCHED_RUN,
    ),
]
