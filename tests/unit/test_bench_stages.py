"""The meters of `python -m bench stages`."""

from __future__ import annotations

import itertools

import pytest
from bench import probes


def test_functions_of_all_stages_exist() -> None:
    assert {stage for stage, *_ in probes.functions()} == {stage for stage, names in probes.STAGES.items() if names}


def test_stage_does_not_include_metered_calls_within_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(probes, "_meter", lambda: next(ticks))
    before = {stage: total.used for stage, total in probes._thread.totals.items()}

    inner = probes.metered("decode", lambda: None)
    probes.metered("parse", lambda: (inner(), inner()))()

    used = {stage: total.used - before[stage] for stage, total in probes._thread.totals.items()}
    # Six readings, five ticks apart; each inner call takes one of these ticks.
    assert used["decode"] == 2
    assert used["parse"] == 3
