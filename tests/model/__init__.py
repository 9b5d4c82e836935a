"""The protocol of one shard as a randomized model: several nodes, one database, faults, and the rules of the engine.

It is the design without the engine's code: what `tests/simulation` shows of the code, this shows of the rules, over many more
interleavings. A rule that is to change is changed here first. A seed decides the interleaving, the faults and what the
database can't do; a run ends when everything has healed and nothing is left to fire.

Modelled: heartbeats, leases, and claims that the database evaluates in two steps; batches that are fenced, torn, lost, late,
or visible row by row; pages of loads; windows with horizon and watermark; attempts, each by itself or several sent together;
retries, superseded results; creates, replaces and deletes; hand-overs; clocks that differ; events and their sink. Not
modelled: history, suspension, schedules, namespaces, forwarded writes, bisected batches, attempts that outlive a hand-over,
gaps in what a sink gets, several shards.

    python -m tests.model [RUNS] [--first N] [--mutant NAME]
    python -m tests.model.mutants [NAME…] [--runs N]
"""
