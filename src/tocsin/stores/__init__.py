"""Databases behind `tocsin.ports.store.Store`, one family of files each, named by technology."""

#: Shards of a new embedded store. There is one writer, so more bring nothing; each costs a row update per commit (16
#: instead of 4 cost a fifth of the creates a second). Not one, so that the parts of the engine that work across shards
#: are never idle.
TOTAL_SHARDS_DEFAULT = 4

#: Shards of a new store that several nodes may share. Each node runs its share of them, so there have to be more than one
#: will ever want nodes; the number can't be changed later.
TOTAL_SHARDS_SHARED_DEFAULT = 16
