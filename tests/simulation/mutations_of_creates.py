"""Creates on a condition: what they look at, what they remember, what they rely on (rule 26)."""

from __future__ import annotations

from .mutation import Mutation

EXISTING = "engine/existing.py"
_KEYS = "keys = op.condition.keys_after(None if former is None else former.timer)"
_REPEATS = "tests/properties/test_repeats.py::"
_PERFECT = _REPEATS + "test_every_create_is_answered_as_a_perfect_memory_would"


def _one(name: str, rule: int, file: str, old: str, new: str, *tests: str) -> Mutation:
    # The interleavings have no such creates.
    return Mutation(name, rule, [(file, old, new)], (("tests.simulation", 0),), tests)


MUTATIONS = [
    _one(
        "a timer that finished in memory counts as pending",
        26,
        EXISTING,
        "    elif finished is not None:\n",
        "    elif False:\n",
        _PERFECT,
    ),
    _one("an end is answered before it is durable", 16, EXISTING, "        batch.relied_on.add(uuid)\n", "", _PERFECT),
    _one(
        "what the same batch ended is not looked at", 26, EXISTING, "        ended = batch.ended[uuid]\n", "", _PERFECT
    ),
    _one("a key is not remembered", 26, EXISTING, _KEYS, "keys = ()"),
    _one("former keys are not carried over", 26, EXISTING, _KEYS, "keys = op.condition.keys_after(None)"),
    _one(
        "keys are stored before the batch is",
        26,
        EXISTING,
        "timer = msgspec.structs.replace(op.timer, keys=keys) if keys else op.timer",
        "timer = op.timer\n    timer.keys = (*timer.keys, *keys)[-4:]",
        "tests/unit/test_window.py::test_a_create_that_is_assembled_again_remembers_its_key_once",
    ),
    _one(
        "no history of a timer only for its keys",
        26,
        "engine/window.py",
        "        if timer.keys:\n            timer, retention_us",
        "        if timer.keys and keeps(mode, timer):\n            timer, retention_us",
    ),
    _one(
        "keys are forgotten with a short retention",
        26,
        EXISTING,
        "return timer, max(retention_us, KEYS_KEPT_US)",
        "return timer, retention_us",
        "tests/unit/test_window.py::test_a_key_outlives_its_timer_by_a_day_in_a_slim_record",
    ),
    _one(
        "a create on a condition judges only what memory has",
        26,
        EXISTING,
        "    elif found is not None and found.live is not None:\n        return _decoded(found.live)\n",
        "",
    ),
    _one(
        "a forwarded create loses its condition",
        26,
        "service.py",
        "            condition=op.condition,\n        )  # fmt: skip\n        self._forwarder",
        "        )  # fmt: skip\n        self._forwarder",
    ),
]
