"""What clients do in a plan."""

from __future__ import annotations

from tocsin.model.flow import Flow, FlowLimits, Rate
from tocsin.model.quota import Quotas

from .plan import NAMESPACE, Load

SECOND = 1_000_000
#: Flow keys, each with a rule of its own.
_KEYS = 200


def _flows(per_key: FlowLimits) -> list[Flow]:
    return [Flow(NAMESPACE, f"key-{number}", 0, 0, per_key=per_key) for number in range(_KEYS)]


#: Timers that clients of each node create a second.
_CREATES = 10.0


def loads(nodes: int) -> list[Load]:
    """The loads for so many nodes. Each node's share of the work is the same for any number."""
    ample = FlowLimits(Rate(1_000, SECOND), burst=100, parallelism=100)
    # Half of what is created, so that timers of each key wait on nearly every node.
    half = FlowLimits(Rate(nodes * round(_CREATES), 2 * _KEYS * SECOND), burst=1)
    return [
        Load("idle"),
        Load("creates", _CREATES),
        Load("quotas", _CREATES, quotas=Quotas(pending=10**9, creates_per_second=10**6)),
        Load("flows", _CREATES, _flows(ample)),
        Load("full flows", _CREATES, _flows(half)),
        Load("one full flow", _CREATES, [Flow(NAMESPACE, "one", 0, 0, per_key=FlowLimits(parallelism=1))]),
    ]
