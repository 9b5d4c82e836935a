"""The ports of orchestration: its database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol, TypeVar

from tocsin.ports.bus import Envelope
from tocsin.service_calls.messages import CallKey
from tocsin.service_calls.orchestration.service_call import ServiceCall

T = TypeVar("T")


class Change(NamedTuple):
    """One call before and after its change."""

    before: ServiceCall
    after: ServiceCall


class Transaction(Protocol):
    """One transaction over service calls, their tags and the outbox. The methods block and run on the database's
    thread: do nothing but decide between the calls."""

    def load(self, keys: Collection[CallKey]) -> dict[CallKey, ServiceCall]:
        """The calls that exist, locked until the end of the transaction where the database locks rows."""

    def find_by_idempotency_key(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], ServiceCall]:
        """The calls that exist, by tenant and idempotency key."""

    def insert(self, calls: Sequence[ServiceCall]) -> set[CallKey]:
        """Adds calls with their tags. Returns the keys of those that were added; the others exist already, by id or by
        idempotency key."""

    def change(self, changes: Sequence[Change]) -> set[CallKey]:
        """Writes each `after`, unless the stored status or execution id differs from `before`. Returns the keys of the
        calls that were written."""

    def delete_waiting(self, keys: Collection[CallKey]) -> set[CallKey]:
        """Deletes calls that are Scheduled or Retrying, with everything that refers to them. Returns their keys."""

    def tags(self, keys: Collection[CallKey]) -> dict[CallKey, tuple[str, ...]]:
        """The tags of each call, sorted."""

    def add_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        """Adds tags to calls that exist. A tag that exists already stays as it is."""

    def remove_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        """Removes tags. A tag that does not exist is ignored."""

    def to_watch(self, now_us: int, limit: int) -> list[ServiceCall]:
        """Unfinished calls whose `watch_at` has passed, the earliest first, locked."""

    def purge(self, finished_before_us: int, limit: int) -> int:
        """Deletes finished calls with everything that refers to them. Returns how many."""

    def append(self, envelopes: Sequence[Envelope]) -> None:
        """Appends messages to the outbox, in this order."""


class ServiceCallStore(Protocol):
    """Transactions over the tables of orchestration."""

    async def transact(self, work: Callable[[Transaction], T]) -> T:
        """Returns the result of `work` once its transaction is durable. An exception of `work` rolls the transaction
        back and is raised. `work` may be called again from the start after a conflict with another transaction, so it
        must have no other effects. Raises StoreUnavailable, DefiniteFailure or OutcomeUnknown."""
