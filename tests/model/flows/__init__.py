"""The protocol of flow control as a randomized model: how the limits of one key hold across nodes.

All limits of a rule have one home, the owner of one shard. Nodes ask it for grants; a grant is a slot (parallelism) and a
token (rate), valid for a while from the moment at which the node *sent* its request. It is the design without the engine's
code, as the model of a shard next to it. A rule that is to change is changed here first.

Modelled: one key with parallelism, rate and burst; requests and answers that are lost, late or overtake one another; nodes
that are frozen, cut off from each other or from the database, or restarted; homes that move, released or presumed dead;
attempts that outlive their node. Not modelled: a rule's total beside its keys, the namespace's limits before it, order,
pauses, keys that a home forgets, clocks that run at different speeds.

    python -m tests.model.flows [RUNS] [--first N] [--mutant NAME]
    python -m tests.model.flows mutants [--runs N]
"""
