"""The rules of flow control, by the mutants that break them; and the values that they depend on."""

from __future__ import annotations

from enum import Enum

#: Ticks for which a grant is valid, from the sending of its request.
VALID = 4
#: Ticks for which a node may act after a heartbeat, and after which the others presume it dead. A new home waits as long for
#: nodes that do not answer it.
LEASE = 8
MEMBER_TIMEOUT = 16


class Violation(Exception):
    """A promise was broken."""


class Mutant(Enum):
    """What happens instead of the rule, and a seed from which on it shows soon."""

    HOME_DOES_NOT_ASK = "a new home grants at once, without the slots that nodes have in use"
    ASKED_NODE_KEEPS_GRANTS = "a grant of the former home stays valid when the new one has asked", 1900
    GIVES_UP_ASKING_EARLY = "a new home waits for answers for less time than a grant of the former one is valid"
    VALID_FROM_RECEIPT = "a grant is valid from its arrival", 1000
    HOME_WITHOUT_LEASE = "a home grants whatever its last heartbeat", 1000
    LATE_REQUEST_COUNTS = "a request that was overtaken replaces the later one"
    LATE_ANSWER_COUNTS = "an answer to a request that was given up is used"
    GRANTS_END_BY_TIME = "the home takes a slot back when the grant is no longer valid, without a report"
    USED_GRANT_IS_NOT_REPORTED = (
        "a report follows only a change of what is in use, not an attempt that has ended already"
    )
    SILENT_NODE_FREED_EARLY = "the home takes the slots of a silent node back before its attempts are excused", 300
    NEW_HOME_HAS_FULL_BUCKET = "a new home begins with all tokens of the burst"
    TOKENS_RETURNED_BLINDLY = "a report returns all tokens of the last grant, used or not"
    TOKENS_RETURN_ON_TOP = "unused tokens return to a full bucket while other nodes hold grants"

    def __init__(self, instead: str, seed: int = 0) -> None:
        self.instead = instead
        self.seed = seed
