"""The mutants: each breaks one rule of the model. Numbers are those of ARCHITECTURE.md, "Rules of the engine"."""

from __future__ import annotations

from enum import Enum


class Mutant(Enum):
    """The rule, what happens instead, and a seed that shows it soon (the hunt begins there, and goes on with others)."""

    NO_FENCE = 1, "a batch is written whoever owns the shard"
    FENCE_ONLY_READS = 1, "the owner is compared first, the batch written later"
    TWO_BATCHES_AT_ONCE = 2, "a batch is sent before the former one was answered"
    UNKNOWN_OUTCOME_IGNORED = 3, "a batch without an answer counts as not written"
    UNKNOWN_OUTCOME_RELOADS = 3, "a batch without an answer drops the window, but keeps the epoch"
    FINISHED_DELETED_BESIDE_NEW_STATE = 4, "a finished row is deleted in the batch that writes its new state", 390
    WATERMARK_COVERS_UPSERTS = 4, "the range delete may cover what the same batch writes", 108
    NO_LEASE = 6, "a node fires whatever its last heartbeat", 922
    LAPSE_IGNORED = 6, "after a lapsed lease the node goes on as before"
    LAPSE_READS_OWNERSHIP = 6, "after a lapsed lease the node only reads whether the shard is still its own", 2401
    MEMBER_TIMEOUT_BELOW_LEASE = 6, "a silent owner is presumed dead before its lease has ended", 1997
    FIRES_WHILE_RELEASING = 6, "a node that hands the shard over fires until the release is confirmed", 10400
    UNKNOWN_CLAIM_USED = 3, "a claim without an answer that took effect is used without another one", 8340
    CLAIM_DOES_NOT_SETTLE = 9, "a claim does not wait until the former owner's batch is visible to loads", 3221
    COMMIT_DOES_NOT_ENTER = 7, "a committed row below the horizon waits for a load"
    COMMIT_DOES_NOT_LEAVE = 8, "the former row stays in the window if the new one is beyond the horizon"
    ACCEPTANCE_CHANGES_WINDOW = 8, "the former row leaves the window when a write is accepted"
    LOAD_IGNORES_COMMITS = 9, "rows committed since the load was announced do not override its page"
    LOAD_IGNORES_COMMITS_BEYOND = 9, "committed rows beyond the load's end do not override its page"
    LOAD_READS_EARLIER_SNAPSHOT = 9, "a page may be from a snapshot that is older than its announcement"
    LOAD_SURVIVES_TRUNCATION = 9, "a page is merged although the horizon shrank meanwhile", 234
    SHORT_PAGE_IS_COMPLETE = 9, "a page with fewer rows than asked counts as complete"
    LOAD_IGNORES_ATTEMPTS = 9, "a page brings back rows whose attempt has begun", 4778
    CLAIM_LOADS_FROM_NOW = 7, "after a claim, loads begin at the present instant"
    RESULTS_ALWAYS_COUNT = 10, "the result of a superseded attempt decides"
    WATERMARK_IGNORES_WINDOW = 11, "the range delete may cover rows of the window", 108
    WATERMARK_IGNORES_ATTEMPTS = 11, "the range delete may cover rows in flight", 793
    WATERMARK_BEYOND_HORIZON = 11, "the range delete may go beyond the horizon", 26358
    RANGE_FROM_WATERMARK = 11, "the range delete begins at the former watermark", 9620
    FIRES_EARLY = 12, "a timer is due one tick before its instant"
    COARSE_INSTANTS = 12, "the database rounds instants down"
    OTHER_UUID_ORDER = 7, "the database sorts uuids otherwise than memory", 211
    TRUNCATION_KEEPS_HORIZON = 13, "dropping the latest rows does not shrink the horizon", 181
    ANSWERED_WHEN_ACCEPTED = 16, "a client is answered before its write is durable"
    FINISHED_ANSWERED_AT_ONCE = 16, "a delete of a finished timer is answered before that is durable"
    DELETE_BY_FORMER_KEY = 17, "a delete finds its row by the key that it had when the delete was accepted", 1774
    RETRY_IN_TWO_BATCHES = 18, "a retry's former row is deleted in one batch, its new one written in the next"
    REPLAY_GOES_BY_MEMORY = 29, "a replay takes a timer for finished that only the store knows to be pending"
    REPLAY_GOES_BY_HISTORY = 29, "a replay takes a timer for finished if a run of it has"
    ITEM_SENT_THOUGH_REPLACED = 34, "what waits in a batch of calls is sent although its row was replaced"
    ITEM_SENT_THOUGH_NOT_OWNED = (
        34,
        "what waits in a batch of calls is sent although its shard was lost or is handed over",
    )
    ITEM_SENT_WITHOUT_LEASE = 34, "a batch of calls is sent whatever the node's last heartbeat", 15_115
    ITEM_NOT_SENT_IS_FORGOTTEN = 34, "what was not sent with its batch of calls is not due again", 3851
    EVENT_WRITTEN_LATER = 35, "an event is written with the batch after the one that it reports"
    EVENT_READ_BEFORE_DURABLE = (
        35,
        "the owner publishes events of a batch that it does not know to be durable",
        2978,
    )
    EVENTS_SENT_TOGETHER = 35, "an event is published before the one before is acknowledged", 322
    EVENT_DELETED_UNACKNOWLEDGED = 35, "an event is deleted once it was sent, whether the sink has it or not", 626
    EVENT_NEVER_DELETED = 35, "an event stays although the sink has it", 2
    EVENT_WRITTEN_TWICE = 35, "each end is reported by two events", 2
    DELETES_BEFORE_UPSERTS = (
        18,
        "a batch in several transactions begins with its deletes, and replaces by delete and insert",
    )

    def __init__(self, rule: int, instead: str, seed: int = 0) -> None:
        self.rule = rule
        self.instead = instead
        self.seed = seed
