"""Events of namespaces with a sink: when they are written, published and removed (rule 35)."""

from __future__ import annotations

from .mutation import Mutation, mutation
from .mutation_operators import Edit, drop, insert, never, replace, rewrite

_ENDS = "tocsin.timers.engine.ends:EndRows."
_FEED = "tocsin.timers.engine.event_feed:_Feed."
_LOG = "tocsin.timers.engine.event_log:EventLog."


def _sunk(name: str, *edits: Edit) -> Mutation:
    return mutation(name, 35, *edits)._replace(proofs=(("tests.simulation.sunk", 0),))


MUTATIONS = [
    _sunk("an end has no event", rewrite(_ENDS + "ended", to="pass")),
    _sunk(
        "an event is removed before its sink has taken it",
        insert(_FEED + "_publish_row", "self._remove(row)", before="self._publish"),
    ),
    _sunk(
        "what follows an event that its sink has refused is published",
        drop(_FEED + "_postpone", "lane.again_at"),
    ),
    _sunk(
        "a sink that has taken nothing of late is never tried again",
        replace(_FEED + "_turn", "boot_us >= lane.again_at", by="False"),
    ),
    _sunk("events are removed and no gap states it", drop(_LOG + "add_to", "batch.upserts")),
    _sunk(
        "an event is published although a gap has taken its place",
        never(_FEED + "_turn", "log.gaps"),
    ),
    _sunk(
        "events of a claim are numbered like those of the claim before",
        replace(_LOG + "next_instant", "event_instant(self._epoch, self._number)", by="event_instant(1, self._number)"),
    ),
]
