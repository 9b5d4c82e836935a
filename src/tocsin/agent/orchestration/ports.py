"""What orchestration asks of its database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol, TypeVar

from tocsin.agent.messages import CallKey
from tocsin.agent.orchestration.service_call import ServiceCall
from tocsin.model.envelope import Envelope

T = TypeVar("T")


class Change(NamedTuple):
    """From one state of a call to the next."""

    before: ServiceCall
    after: ServiceCall


class Transaction(Protocol):
    """One transaction over service calls, their tags and the outbox. Its methods block, and run on the database's
    thread: nothing but deciding belongs between them."""

    def load(self, keys: Collection[CallKey]) -> dict[CallKey, ServiceCall]:
        """The calls that exist, locked until the end of the transaction where the database locks rows."""

    def find_by_idempotency_key(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], ServiceCall]:
        """By tenant and idempotency key."""

    def insert(self, calls: Sequence[ServiceCall]) -> set[CallKey]:
        """Adds calls with their tags; returns those that were added. The others exist, by id or by idempotency key."""

    def change(self, changes: Sequence[Change]) -> set[CallKey]:
        """Writes each `after`, unless status or execution id are no longer those of `before`; returns the keys of those
        that were written."""

    def delete_waiting(self, keys: Collection[CallKey]) -> set[CallKey]:
        """Deletes calls that are Scheduled or Retrying, with all that refers to them; returns which."""

    def tags(self, keys: Collection[CallKey]) -> dict[CallKey, tuple[str, ...]]:
        """The tags of each call, in order of the alphabet."""

    def add_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        """Adds tags to calls that exist; what is there stays."""

    def remove_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        """Removes tags; what isn't there is fine."""

    def to_watch(self, now_us: int, limit: int) -> list[ServiceCall]:
        """Unfinished calls whose `watch_at` has passed, the earliest first, locked."""

    def purge(self, finished_before_us: int, limit: int) -> int:
        """Deletes finished calls with all that refers to them; returns how many."""

    def append(self, envelopes: Sequence[Envelope]) -> None:
        """Adds messages to the outbox, in their order."""


class ServiceCallStore(Protocol):
    """Transactions over what orchestration owns."""

    async def transact(self, work: Callable[[Transaction], T]) -> T:
        """What `work` returns, once it is durable. An exception of `work` undoes everything and is raised. `work` may be
        called again from the start after a conflict with another transaction: it has to be free of other effects.
        Raises StoreUnavailable, DefiniteFailure, or OutcomeUnknown."""
