"""Databases behind `tocsin.ports.store.Store`, one family of files each, named by technology."""

#: Shards of a new embedded store. It has one writer, so more shards have no advantage, and each costs a row update in every
#: commit (16 instead of 4 cost a fifth of the creates per second). Not one, so that the engine's code for several shards is
#: always in use.
TOTAL_SHARDS_DEFAULT = 4

#: Shards of a new store that several nodes may share. Each node runs its share of them, so there must be more shards than
#: there will ever be nodes; the number can't be changed later.
TOTAL_SHARDS_SHARED_DEFAULT = 16
