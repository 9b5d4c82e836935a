"""Conditional creates: what they compare, which keys they remember, which ends they rely on (rules 16 and 26)."""

from __future__ import annotations

from .mutation import Mutation, mutation
from .mutation_operators import Edit, drop, leave_out, narrow, never, replace, rewrite

EXISTING = "tocsin.timers.engine.idempotency:"
_WINDOW = "tests/unit/test_window.py::"
_PERFECT = "tests/properties/test_repeats.py::test_every_create_is_answered_as_by_a_reference_model"


def _simulated(name: str, rule: int, *edits: Edit, caught_by: str = "") -> Mutation:
    # The interleavings of tests.properties have no such creates.
    return mutation(name, rule, *edits, caught_by=caught_by)._replace(proofs=(("tests.simulation", 0),))


MUTATIONS = [
    _simulated(
        "a timer that finished in memory counts as pending",
        26,
        never(EXISTING + "former_row", "finished is not None"),
        caught_by=_PERFECT,
    ),
    _simulated(
        "an end is reported before it is durable",
        16,
        drop(EXISTING + "former_row", "batch.relied_on"),
        caught_by=_PERFECT,
    ),
    _simulated(
        "a timer that the same batch ended is overlooked",
        26,
        drop(EXISTING + "former_row", "batch.ended"),
        caught_by=_PERFECT,
    ),
    _simulated("a key is not remembered", 26, replace(EXISTING + "create_if", "op.condition.keys_after(...)", by="()")),
    _simulated(
        "former keys are not carried over",
        26,
        replace(EXISTING + "create_if", "None if former is None else former.timer", by="None"),
    ),
    _simulated(
        "keys are stored before the batch is",
        26,
        rewrite(
            EXISTING + "create_if",
            "timer = ...",
            to="""
            timer = op.timer
            timer.keys = (*timer.keys, *keys)[-4:]
            """,
        ),
        caught_by=_WINDOW + "test_create_that_is_assembled_again_stores_its_key_once",
    ),
    _simulated(
        "a timer without history keeps no keys",
        26,
        narrow("tocsin.timers.engine.assembly:Assembly._record", "timer.keys", and_="keeps(mode, timer)"),
    ),
    _simulated(
        "keys are forgotten with a short retention",
        26,
        replace(EXISTING + "kept_for_its_keys", "max(retention_us, KEYS_KEPT_US)", by="retention_us"),
        caught_by=_WINDOW + "test_idempotency_key_outlives_its_timer_by_a_day_in_a_slim_record",
    ),
    _simulated(
        "a conditional create compares only with timers in memory",
        26,
        drop(EXISTING + "former_row", "found.live is not None"),
    ),
    _simulated(
        "a repeated create goes by memory alone",
        26,
        never("tocsin.timers.engine.window:Window.needs_store", "op.condition is not None and op.condition.reads"),
        caught_by=_PERFECT,
    ),
    _simulated(
        "a forwarded create loses its condition",
        26,
        leave_out("tocsin.timers.writing:Writes.forward", "op.condition"),
    ),
]
