"""Schedules: one row, identified by occurrence and attempt (rule 10, amended), whose results meet the present definition."""

from __future__ import annotations

from .mutation import Mutation
from .mutation_operators import Edit, always, drop, insert, never, replace

WINDOW = "tocsin.timers.engine.window:Window."
ASSEMBLY = "tocsin.timers.engine.assembly:Assembly."
DISPATCHER = "tocsin.timers.engine.dispatcher:Dispatcher."
RECURRING = "tocsin.timers.engine.recurring:"
#: The simulation with schedules in every seed.
PROOFS = (("tests.simulation.scheduled", 0),)


def _mutation(name: str, rule: int, *edits: Edit) -> Mutation:
    return Mutation(name, rule, edits, PROOFS)


MUTATIONS = [
    _mutation(
        "a schedule's attempt is identified by its row's generation",
        10,
        always("tocsin.timers.engine.rows:Row.__init__", "timer.schedule is None"),
    ),
    _mutation(
        "the next occurrence has the definition of the dispatch",
        10,
        replace(ASSEMBLY + "_recur", "present.timer", by="op.timer"),
    ),
    _mutation("a page does not show an attempt its definition", 10, drop(WINDOW + "loaded", "self._adopt")),
    _mutation("a change does not reach the attempt in flight", 10, drop(WINDOW + "committed", "self._adopt")),
    _mutation(
        "the next occurrence is written by a later batch",
        18,
        insert(
            ASSEMBLY + "_turn",
            "if op.kind is OpKind.RECUR and timer.status is Status.PENDING:\n"
            "    batch.final[op.uuid] = None\n"
            "    batch.ended[op.uuid] = row\n"
            "    create = WriteOp(OpKind.CREATE, op.uuid, timer.namespace, timer=timer)\n"
            "    self._window.accept(create)\n"
            "    return row\n",
            before="run = ...",
        ),
    ),
    _mutation(
        "an attempt begins while a client changes its schedule", 10, never(DISPATCHER + "_waits", "window.is_changing")
    ),
    _mutation(
        "an attempt left to a former owner does not count as begun",
        25,
        drop(ASSEMBLY + "_resolve", "timer = recurring.left(timer)"),
    ),
    _mutation("a paused schedule tries again", 0, never(RECURRING + "_may_try_again", "state.paused")),
    _mutation(
        "missed instants are not accounted for",
        0,
        drop(RECURRING + "_regular", "why", "too_old"),
    ),
    _mutation("a result applies to any occurrence", 10, never(ASSEMBLY + "_recur", "present.identity != op.expected")),
]
