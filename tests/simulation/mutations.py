"""Each rule of the engine, dropped or changed in the source: what the simulation, and the tests that a mutation names, must
notice."""

from __future__ import annotations

from . import mutations_of_a_shard, mutations_of_creates, mutations_of_nodes

MUTATIONS = mutations_of_a_shard.MUTATIONS + mutations_of_nodes.MUTATIONS + mutations_of_creates.MUTATIONS
