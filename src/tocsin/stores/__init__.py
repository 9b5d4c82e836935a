"""Databases behind `tocsin.ports.store.Store`, one family of files each, named by technology."""

#: Shards of a store that is opened for the first time without anybody saying how many.
TOTAL_SHARDS_DEFAULT = 16
