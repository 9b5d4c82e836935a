"""A few seeds in every test run; `make simulate-agent` runs more."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.mutation import misfits
from tests.support.cases import each
from tests.support.hash_seeds import printed_under_hash_seeds

from .mutations import MUTATIONS
from .world import RUN_S_MAX, World

_CHUNK = 50

#: Seeds that once failed.
REGRESSIONS = [
    5188,  # a process that was asked to stop while frozen was also replaced by a takeover, and the run never ended
]


@pytest.mark.slow
# A busy machine takes a minute and more.
@pytest.mark.timeout(400)
@pytest.mark.parametrize("first", range(0, 150, _CHUNK))
def test_outcomes_are_correct_under_random_faults(first: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + _CHUNK):
        world = World(seed)
        violation = world.run()
        assert violation is None, f"seed {seed}: {violation}"
        happened.update(str(line[1]) for line in world.trace)
        happened.update(str(line[2]) for line in world.trace if line[1] == "ServiceCallChanged")
        happened.update(
            "deleted while Retrying"
            for client in world.clients
            if client.deleted is True and client.number in world.receivers.sent
        )
    # A simulation without failures would prove nothing.
    for what in (
        "commit unknown",
        "commit lost",
        "broker away",
        "kill",
        "freeze",
        "CallRescued",
        "ExecutionsInterrupted",
        "Retrying",
        "deleted while Retrying",
        "retried",
        "waits for its flow",
        "no token",
        "issuer back",
        "credential rotated",
        "credential removed",
    ):
        assert happened[what] > 0, happened


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_seeds_that_failed_once_pass(seed: int) -> None:
    violation = World(seed).run()
    assert violation is None, str(violation)


def test_a_run_that_never_ends_fails_and_names_what_it_waits_for() -> None:
    world = World(0)
    world.tables.away = "refusing"
    violation = world.run()
    assert str(violation).startswith(f"STANDSTILL: no end after {RUN_S_MAX:g} s; under way: client 0, client 1")


def test_a_seed_replays_under_any_hash_seed() -> None:
    program = """
from tests.agent_simulation.world import World
for seed in (1, 4, 7):
    world = World(seed)
    world.run()
    print(world.fingerprint())
"""
    assert len(printed_under_hash_seeds(program)) == 1


@each("mutation", MUTATIONS)
def test_every_mutation_still_applies(mutation: object) -> None:
    assert misfits(mutation) == []  # type: ignore[arg-type]
