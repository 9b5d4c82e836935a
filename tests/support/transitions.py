"""What may become of a timer in a window: its states, the events, and the states that may follow.

The simulation and the property tests check each event of every window against `TRANSITIONS`, and a test shows that all of it
occurs (`tests/support/checked_window.py`).
"""

from __future__ import annotations

from enum import Enum, auto


class TimerState(Enum):
    """Where a timer is, by the newest of its rows that memory has. In a new window, every timer is absent."""

    #: Memory has no row: it is beyond the horizon, suspended, or deleted. An attempt may be under way whose row has been
    #: replaced, or is not known to be durable because the attempt began under a former claim.
    ABSENT = auto()
    #: In the window, until it is due and has a slot.
    WAITING = auto()
    #: In the window and due; its destination or namespace is busy.
    DEFERRED = auto()
    #: In the window, until a batch suspends it or plans its schedule again. It does not fire.
    SUSPENDING = auto()
    #: In the window, because a load returned its row before the commit is confirmed. Memory has the former row, too.
    EARLY = auto()
    #: Its attempt is under way.
    IN_FLIGHT = auto()
    #: Its attempt is under way, and a client's write or a hand-over is accepted: the attempt decides only if the write does
    #: not change the row.
    SUPERSEDED = auto()
    #: Such an attempt has ended. Its result counts if the write does not change the row.
    SUPERSEDED_RESULT = auto()
    #: The next attempt, or a schedule's next occurrence, waits for the batch that writes it.
    RETRYING = auto()
    #: The last attempt has ended, or expired. The row waits for the batch that deletes it.
    FINISHED = auto()
    #: Neither fires nor is deleted by range until a write decides: the record can't be read, the store refused to delete the
    #: finished timer, or its retry can't be written.
    AWAITING_WRITE = auto()


class WindowEvent(Enum):
    """What happens to a timer in a window."""

    #: A load returns its row.
    LOAD = auto()
    #: A load returns the row of which an attempt is under way.
    LOAD_IN_FLIGHT = auto()
    #: Memory is short, and the row is one of the latest.
    TRUNCATE = auto()
    #: It is due and has no slot.
    DEFER = auto()
    #: A deferred timer is no longer due, or needs another turn.
    PUT_BACK = auto()
    #: Its suspension, or that its schedule is planned again, is queued.
    SUSPEND = auto()
    #: Its attempt begins.
    DISPATCH = auto()
    #: It is too late for an attempt.
    EXPIRE = auto()
    #: The request was not sent.
    NOT_SENT = auto()
    #: The request was not sent, because the settings forbid the address.
    ADDRESS_REFUSED = auto()
    #: The attempt has ended; another one, or a schedule's next occurrence, follows.
    NEXT_ATTEMPT = auto()
    #: The attempt has ended, and was the last.
    FINAL_ATTEMPT = auto()
    #: A client's write, a hand-over, or the result of a handed-over attempt is queued.
    WRITE_ACCEPTED = auto()
    #: An operation on the timer will not be written: it can't be, or its time is over.
    WRITE_REFUSED = auto()
    #: The retry can't be encoded.
    RETRY_UNUSABLE = auto()
    #: The store refuses to delete the finished timer.
    DELETE_REFUSED = auto()
    #: The refused delete is tried again.
    DELETE_AGAIN = auto()
    #: A batch is durable that writes a row up to the horizon.
    COMMIT = auto()
    #: A batch is durable that deletes the timer, suspends it, or moves it beyond the horizon.
    COMMIT_AWAY = auto()
    #: A batch is durable whose operations leave the row as it is in memory: they don't change it, or a load has returned it
    #: before and its attempt has begun.
    COMMIT_UNCHANGED = auto()


S, E = TimerState, WindowEvent

#: The states that may follow, by state and event. An event that is not listed for a state leaves the timer in it.
TRANSITIONS: dict[TimerState, dict[WindowEvent, set[TimerState]]] = {
    S.ABSENT: {
        E.LOAD: {S.WAITING, S.SUSPENDING, S.AWAITING_WRITE},
        E.LOAD_IN_FLIGHT: {S.IN_FLIGHT, S.SUPERSEDED},
        E.COMMIT: {S.WAITING},
        # A schedule is changed before a load returns the row of its attempt.
        E.COMMIT_UNCHANGED: {S.IN_FLIGHT},
    },
    S.WAITING: {
        E.TRUNCATE: {S.ABSENT},
        E.DEFER: {S.DEFERRED},
        E.SUSPEND: {S.SUSPENDING},
        E.DISPATCH: {S.IN_FLIGHT, S.SUPERSEDED},
        E.EXPIRE: {S.FINISHED, S.SUPERSEDED_RESULT},
        E.COMMIT_AWAY: {S.ABSENT},
    },
    S.DEFERRED: {
        E.TRUNCATE: {S.ABSENT},
        E.PUT_BACK: {S.WAITING},
        E.SUSPEND: {S.SUSPENDING},
        E.DISPATCH: {S.IN_FLIGHT, S.SUPERSEDED},
        E.EXPIRE: {S.FINISHED, S.SUPERSEDED_RESULT},
        # The change for which a schedule's timer was deferred is over.
        E.WRITE_REFUSED: {S.WAITING},
        E.COMMIT: {S.WAITING},
        E.COMMIT_AWAY: {S.ABSENT},
        E.COMMIT_UNCHANGED: {S.WAITING},
    },
    S.SUSPENDING: {
        E.TRUNCATE: {S.ABSENT},
        E.COMMIT: {S.WAITING},
        E.COMMIT_AWAY: {S.ABSENT},
    },
    S.EARLY: {
        E.TRUNCATE: {S.SUPERSEDED, S.SUPERSEDED_RESULT, S.RETRYING, S.FINISHED, S.AWAITING_WRITE},
        E.DISPATCH: {S.IN_FLIGHT, S.SUPERSEDED},
        E.EXPIRE: {S.FINISHED, S.SUPERSEDED_RESULT},
        # The former row's attempt returns it in the early one's place, until the commit is confirmed.
        E.NOT_SENT: {S.WAITING},
        E.ADDRESS_REFUSED: {S.SUSPENDING},
        E.COMMIT: {S.WAITING, S.SUSPENDING},
    },
    S.IN_FLIGHT: {
        # Absent where the horizon has shrunk since; early if the commit of the attempt's own row is not confirmed yet.
        E.NOT_SENT: {S.WAITING, S.ABSENT, S.EARLY},
        E.ADDRESS_REFUSED: {S.SUSPENDING, S.ABSENT, S.EARLY},
        E.NEXT_ATTEMPT: {S.RETRYING},
        E.FINAL_ATTEMPT: {S.FINISHED},
        E.WRITE_ACCEPTED: {S.SUPERSEDED},
    },
    S.SUPERSEDED: {
        E.LOAD: {S.EARLY},
        E.NOT_SENT: {S.WAITING, S.ABSENT},
        E.ADDRESS_REFUSED: {S.SUSPENDING, S.ABSENT},
        E.NEXT_ATTEMPT: {S.SUPERSEDED_RESULT},
        E.FINAL_ATTEMPT: {S.SUPERSEDED_RESULT},
        E.WRITE_REFUSED: {S.IN_FLIGHT},
        E.COMMIT: {S.WAITING},
        E.COMMIT_AWAY: {S.ABSENT},
        E.COMMIT_UNCHANGED: {S.IN_FLIGHT},
    },
    S.SUPERSEDED_RESULT: {
        E.LOAD: {S.EARLY},
        E.WRITE_REFUSED: {S.RETRYING, S.FINISHED},
        E.COMMIT: {S.WAITING},
        E.COMMIT_AWAY: {S.ABSENT},
        E.COMMIT_UNCHANGED: {S.RETRYING, S.FINISHED},
    },
    S.RETRYING: {
        E.LOAD: {S.EARLY},
        E.RETRY_UNUSABLE: {S.AWAITING_WRITE},
        E.COMMIT: {S.WAITING},
        E.COMMIT_AWAY: {S.ABSENT},
    },
    S.FINISHED: {
        E.LOAD: {S.EARLY},
        E.DELETE_REFUSED: {S.AWAITING_WRITE},
        E.COMMIT: {S.WAITING},
        E.COMMIT_AWAY: {S.ABSENT},
    },
    S.AWAITING_WRITE: {
        E.LOAD: {S.EARLY},
        E.DELETE_AGAIN: {S.FINISHED},
        E.COMMIT: {S.WAITING},
        E.COMMIT_AWAY: {S.ABSENT},
    },
}
