"""A few hundred seeds of the simulation in every test run; `make simulate` runs any number."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import pytest

from tests.support.cases import each
from tests.support.hash_seeds import printed_under_hash_seeds
from tocsin.ports.store import Applied, ShardBatch

from .mutation import misfits
from .mutations import MUTATIONS
from .world import World

_CHUNK = 25

#: Seeds that once failed.
REGRESSIONS = [
    4,  # a claim that the store had not confirmed was used, and a timer of the former owner's last transaction was missed
    24,  # a former owner woke while another node's claim was on its way, and went on with a shard that it then lost
    8,  # a destination with a single waiting place never took back what was suspended for it
    296,  # an update with an unknown outcome, done after all
    415,  # one undecodable row, loaded again and again while memory was short, counted as many
    1188,  # the shard was lost while its finished timers were deleted one at a time
    5111,  # the clock jumped between the heartbeat that measured it and the resumption of dispatch
    5203,  # the same, while the lease was verified
    5333,  # a timer failed for an attempt that was under way at a handover, and had not been sent (the check was wrong)
    4014,  # the history of an expired timer was refused twice, so that nothing showed its end (the check was wrong)
    4673,  # a schedule was changed by a clock that was set back behind a call that was forgotten (the check was wrong)
    8073,  # what waited for a slot expired during a pause, and its shards went on waiting for one
    206,  # a schedule's row, deferred and put back by a refused change, was called while its suspension was written
    789,  # a slow attempt began while its node waited for the last one, and outlasted the wait
    1559,  # the row of a node that had ended came back with a late heartbeat, and the last node relied on it
    3016,  # an attempt whose own row was not confirmed yet was not sent (the table did not know it)
    1166,  # a timer was created again while a load read the row of its attempt in flight (the check was wrong)
    1014,  # a replay of an end that was not durable yet wrote that end twice in one transaction
    2659,  # a schedule was called before the client that had created it again had its answer (the check was wrong)
    20144,  # a flow's key went on with its namespace's limits after these were forgotten, and asked for nothing
]


# `test_fault_coverage.py` runs the first hundred, in `make test` too.
@pytest.mark.timeout(400)
@pytest.mark.parametrize("first", range(100, 300, _CHUNK))
def test_guarantees_hold_under_faults(first: int) -> None:
    for seed in range(first, first + _CHUNK):
        violation = World(seed).run()
        assert violation is None, f"seed {seed}: {violation}"


@pytest.mark.timeout(400)
def test_guarantees_hold_with_small_transactions_of_one_shard_and_no_range_deletes() -> None:
    for seed in range(_CHUNK):
        world = World(seed, small_transactions=True)
        applied: list[Sequence[ShardBatch]] = []
        world.store.apply = partial(_recorded, applied, world.store.apply)
        violation = world.run()
        assert violation is None, f"seed {seed}: {violation}"
        assert applied
        assert all(len(batches) == 1 and batches[0].delete_to is None for batches in applied)


async def _recorded(
    applied: list[Sequence[ShardBatch]],
    apply: Callable[[Sequence[ShardBatch]], Awaitable[list[Applied]]],
    batches: Sequence[ShardBatch],
) -> list[Applied]:
    applied.append(batches)
    return await apply(batches)


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_seeds_that_failed_once_pass(seed: int) -> None:
    violation = World(seed).run()
    assert violation is None, str(violation)


def test_seed_is_reproducible_with_any_hash_seed() -> None:
    program = (
        "from tests.simulation.world import World\nfor s in (1, 4, 7):\n w = World(s); w.run(); print(w.fingerprint())"
    )
    assert len(printed_under_hash_seeds(program)) == 1


@each("mutation", MUTATIONS)
def test_every_mutation_still_applies(mutation: object) -> None:
    assert misfits(mutation) == []  # type: ignore[arg-type]
