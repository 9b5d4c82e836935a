"""Each rule of the engine, dropped or changed in the source: what the simulation, and the tests that a mutation names, must
notice."""

from __future__ import annotations

from . import (
    mutations_of_attempts,
    mutations_of_batches,
    mutations_of_claims,
    mutations_of_clocks,
    mutations_of_creates,
    mutations_of_debounce,
    mutations_of_destinations,
    mutations_of_failures,
    mutations_of_flows,
    mutations_of_forwarding,
    mutations_of_jobs,
    mutations_of_monitors,
    mutations_of_replays,
    mutations_of_runs,
    mutations_of_schedules,
    mutations_of_sinks,
    mutations_of_writes,
)

MUTATIONS = (
    mutations_of_claims.MUTATIONS
    + mutations_of_writes.MUTATIONS
    + mutations_of_attempts.MUTATIONS
    + mutations_of_batches.MUTATIONS
    + mutations_of_forwarding.MUTATIONS
    + mutations_of_creates.MUTATIONS
    + mutations_of_debounce.MUTATIONS
    + mutations_of_replays.MUTATIONS
    + mutations_of_runs.MUTATIONS
    + mutations_of_failures.MUTATIONS
    + mutations_of_schedules.MUTATIONS
    + mutations_of_clocks.MUTATIONS
    + mutations_of_jobs.MUTATIONS
    + mutations_of_monitors.MUTATIONS
    + mutations_of_flows.MUTATIONS
    + mutations_of_destinations.MUTATIONS
    + mutations_of_sinks.MUTATIONS
)
