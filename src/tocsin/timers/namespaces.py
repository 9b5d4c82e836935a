"""Namespaces: which this node knows, where their timers are, and how they are created and changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec
from msgspec.structs import asdict

from tocsin.administration import NAMESPACES, put_namespace
from tocsin.model.batch import CallbackBatch
from tocsin.model.errors import (
    Conflict,
    FieldError,
    InvalidInput,
    NamespaceExists,
    NamespaceNotFound,
    StoreCallFailed,
    StoreError,
    Unavailable,
    version_conflict,
)
from tocsin.model.flow import FlowLimits
from tocsin.model.hooks import NO_HOOKS, Hook
from tocsin.model.ids import namespace_hash, shards_of_namespace
from tocsin.model.ids import shard_of as shard_in
from tocsin.model.namespace import (
    DEFAULT_NAMESPACE,
    RESERVED_PREFIX,
    Answers,
    DamagedNamespace,
    HistoryMode,
    Namespace,
    policy_in_force,
)
from tocsin.model.quota import NO_QUOTAS
from tocsin.model.retry import RetryPolicy
from tocsin.model.sealed import hooks_opened, hooks_sealed
from tocsin.model.secrets import SigningSecrets
from tocsin.model.stored_secrets import with_hooks
from tocsin.model.timer import Timer
from tocsin.ports.forward import Peers
from tocsin.ports.seals import SealBroken, Seals, opener, sealer, stored_like
from tocsin.timers.engine.context import Context, being_deleted
from tocsin.timers.engine.membership import Membership, address_of
from tocsin.timers.engine.supervisor import Supervisor

T = TypeVar("T")

_NO_CHANGES: Mapping[str, Hook | None] = MappingProxyType({})
_SAME_QUOTAS: Mapping[str, int | None] = MappingProxyType({})

#: When to repeat a request for a namespace whose record is damaged: an operator has to restore it first.
_DAMAGED_RETRY_AFTER_S = 60.0
#: Attempts at a change of a namespace that others change at the same time. Each failed attempt means that another's change
#: was made.
_TRIES_MAX = 10
#: Pause between two attempts to reach the nodes that have not confirmed.
_PROPAGATION_PAUSE_US = 100_000


class Namespaces:
    """The namespaces of the timer service. A new one has `num_shards` shards and keeps its history for
    `retention_us`, unless it is created with others."""

    def __init__(self, context: Context, supervisor: Supervisor, *, num_shards: int, retention_us: int) -> None:
        self._context = context
        self._supervisor = supervisor
        self._namespace_num_shards = num_shards
        self._retention_us = retention_us
        self._shared = not context.store.capabilities.exclusive
        #: The other nodes, once they can be reached.
        self.peers: Peers | None = None
        self._namespace_change = asyncio.Lock()

    # ------------------------------------------------------------------ known here

    async def ensure_known(self, namespace: str) -> None:
        """Reads the namespaces if this node doesn't know this one: where nodes share the store, another may have created
        it."""
        if self._shared and namespace not in self._context.namespaces:
            await self.refresh()

    async def refresh(self) -> None:
        """Reads the namespaces, by a read that begins after the call. Raises Unavailable."""
        await self.read(self._context.refresh_namespaces())

    def shard_of(self, namespace: str, uuid: bytes) -> int:
        """The shard of a uuid in a namespace that this node knows. Raises NamespaceNotFound, Unavailable."""
        arc = self._context.arcs.get(namespace)
        if arc is None:
            arc = self._context.arcs[namespace] = (namespace_hash(namespace), self.get(namespace).num_shards)
        return shard_in(arc[0], uuid, arc[1], self._supervisor.total_shards)

    def get(self, name: str) -> Namespace:
        """The namespace, as this node knows it. Raises NamespaceNotFound, Unavailable."""
        found = self._context.namespaces.get(name)
        if found is None:
            raise NamespaceNotFound(f"there is no namespace {name!r}; create it first with namespaces/create")
        if isinstance(found, DamagedNamespace):
            raise Unavailable(
                f"the stored record of namespace {name!r} is damaged ({found.reason}); its timers wait until the record is "
                "restored from a backup",
                retry_after_s=_DAMAGED_RETRY_AFTER_S,
            )
        return found

    async def known_among(self, names: Collection[str]) -> tuple[str, ...]:
        """Those of the namespaces that exist and whose records can be read, sorted."""
        if self._shared and not self._context.namespaces.keys() >= set(names):
            await self.refresh()
        return tuple(sorted(name for name in names if isinstance(self._context.namespaces.get(name), Namespace)))

    @property
    def total_shards(self) -> int:
        """The number of shards of the store."""
        return self._supervisor.total_shards

    def shards_of(self, names: Iterable[str]) -> list[int]:
        """The shards in which these namespaces, which this node knows, may have timers, sorted."""
        total = self._supervisor.total_shards
        each = (shards_of_namespace(namespace_hash(name), self.get(name).num_shards, total) for name in names)
        return sorted(set().union(*each))

    def retry_policy(self, timer: Timer) -> RetryPolicy:
        """The retry policy that applies to the timer's next failed attempt, as far as this node knows."""
        return policy_in_force(timer.retry, self._context.namespaces.get(timer.namespace))

    @property
    def seals(self) -> Seals:
        """What encrypts secrets before they are stored."""
        return self._context.seals

    def is_paused(self, name: str) -> bool:
        """Whether this node knows the namespace as paused, or as one that is being deleted."""
        found = self._context.namespaces.get(name)
        return isinstance(found, Namespace) and found.held

    def refuse_deleting(self, name: str) -> None:
        """Raises NamespaceDeleting if this node knows that the namespace is being deleted."""
        found = self._context.namespaces.get(name)
        if found is not None and found.deleting is not None:
            raise being_deleted(found)

    def marked(self) -> dict[str, str]:
        """The namespaces that this node knows as being deleted, each with the id of its job."""
        return {name: each.deleting for name, each in self._context.namespaces.items() if each.deleting is not None}

    # ------------------------------------------------------------------ in the store

    async def all(self) -> list[Namespace]:
        """All namespaces by name."""
        listed = await self.read(self._context.read_namespaces())
        return sorted(listed, key=lambda namespace: namespace.name)

    async def stored(self, name: str) -> Namespace:
        """The namespace, also one that is damaged. Raises NamespaceNotFound, Unavailable."""
        await self.refresh()
        found = self._context.namespaces.get(name)
        return self.get(name) if found is None else found

    async def create(
        self,
        name: str,
        *,
        num_shards: int | None = None,
        history: HistoryMode | None = None,
        retention_us: int | None = None,
        secret: str | None = None,
        answers: Answers = Answers.STANDARD,
        retry: RetryPolicy | None = None,
        hooks: Mapping[str, Hook | None] = _NO_CHANGES,
        limits: FlowLimits | None = None,
        callback_batch: CallbackBatch | None = None,
        event_sink: str | None = None,
        quotas: Mapping[str, int | None] | None = _SAME_QUOTAS,
        managed_by: str | None = None,
        reserved: bool = False,
    ) -> Namespace:
        """Creates a namespace, with hooks by their events and quotas by their fields. Only with `reserved` may the name begin
        with the server's prefix. Raises NamespaceExists, NamespaceDeleting, InvalidInput, Unavailable."""
        if name.startswith(RESERVED_PREFIX) and not reserved:
            reason = f"begins with {RESERVED_PREFIX!r}, which is reserved for the server; choose another name"
            raise InvalidInput(FieldError("name", reason))
        total = self._supervisor.total_shards
        if num_shards is not None and not 1 <= num_shards <= total:
            raise InvalidInput(FieldError("numShards", f"must be between 1 and {total}, the store's number of shards"))
        now, seal = self._context.clock.now_us(), sealer(self._context.seals, name)
        namespace = Namespace(
            name,
            num_shards if num_shards is not None else min(self._namespace_num_shards, total),
            now,
            now,
            history if history is not None else HistoryMode.ALL,
            retention_us if retention_us is not None else self._retention_us,
            None if secret is None else seal(secret),
            version=1,
            answers=answers,
            retry=retry,
            hooks=NO_HOOKS.changed(with_hooks(hooks_sealed(hooks, seal), None)),
            limits=limits,
            quotas=NO_QUOTAS.changed(quotas),
            managed_by=managed_by,
            callback_batch=callback_batch,
            event_sink=event_sink,
        )
        if not await self.read(put_namespace(self._context.store, namespace, create=True)):
            await self.refresh()
            self.refuse_deleting(name)
            raise NamespaceExists(f"a namespace {name!r} already exists")
        self._context.changed_namespace(namespace)
        return namespace

    async def update(
        self,
        name: str,
        *,
        history: HistoryMode | None = None,
        retention_us: int | None = None,
        secret: str | None = None,
        remove_secret: bool = False,
        paused: bool | None = None,
        answers: Answers | None = None,
        retry: RetryPolicy | msgspec.UnsetType | None = msgspec.UNSET,
        hooks: Mapping[str, Hook | None] = _NO_CHANGES,
        limits: FlowLimits | msgspec.UnsetType | None = msgspec.UNSET,
        callback_batch: CallbackBatch | msgspec.UnsetType | None = msgspec.UNSET,
        event_sink: str | msgspec.UnsetType | None = msgspec.UNSET,
        quotas: Mapping[str, int | None] | None = _SAME_QUOTAS,
        managed_by: str | msgspec.UnsetType | None = msgspec.UNSET,
        expected_version: int | None = None,
        dry_run: bool = False,
    ) -> tuple[Namespace, bool]:
        """Changes the fields that are not None; a `retry` of None restores the default policy, and `limits`, a
        `callback_batch` or an `event_sink` of None removes them. Of the hooks, those of the given events change, or are
        removed where None, and so do the quotas of the given fields; None removes all. A new secret signs alone at once,
        which ends a rotation; the present one changes nothing. The namespace, and whether anything has changed: otherwise
        nothing was written. With `dry_run` nothing is in any case.

        When this returns, every node that may fire a timer applies the change. It takes at most a fifth longer than
        `namespaces_lease`. Raises NamespaceNotFound, NamespaceDeleting, InvalidInput, Conflict, Unavailable, and
        VersionConflict if the namespace has not the version that is expected.
        """

        unchanged = False
        given = {"quotas": quotas, "limits": limits, "callbackBatch": callback_batch, "eventSink": event_sink}
        field = next((name for name, value in given.items() if value), None)
        if field is not None and name.startswith(RESERVED_PREFIX):
            raise InvalidInput(
                FieldError(field, f"are not for namespace {name!r}, which is the server's own; leave them out")
            )

        hooks = hooks_sealed(hooks, sealer(self._context.seals, name))

        def change(known: Namespace) -> Namespace:
            nonlocal unchanged
            self.refuse_deleting(name)
            refuse_version(f"namespace {known.name!r}", known.version, expected_version)
            fresh = None if secret is None else self._sealed_like(known, secret)
            replaced = remove_secret or (secret is not None and fresh != known.secret)
            changed = known.changed(
                self._context.clock.now_us(),
                SigningSecrets(fresh) if replaced else known.signing,
                history=known.history if history is None else history,
                retention_us=known.retention_us if retention_us is None else retention_us,
                paused=known.paused if paused is None else paused,
                answers=known.answers if answers is None else answers,
                retry=known.retry if retry is msgspec.UNSET else retry,
                hooks=(known.hooks or NO_HOOKS).changed(with_hooks(hooks, known.hooks)),
                limits=known.limits if limits is msgspec.UNSET else limits,
                callback_batch=known.callback_batch if callback_batch is msgspec.UNSET else callback_batch,
                event_sink=known.event_sink if event_sink is msgspec.UNSET else event_sink,
                quotas=(known.quotas or NO_QUOTAS).changed(quotas),
                managed_by=known.managed_by if managed_by is msgspec.UNSET else managed_by,
            )
            unchanged = known == msgspec.structs.replace(changed, updated_at=known.updated_at, version=known.version)
            return known if unchanged else changed

        if dry_run:
            await self.refresh()
            found = change(self.get(name))
        else:
            found = await self._change_everywhere(name, change)
        return found, not unchanged

    async def rotate_secret(self, name: str, fresh: str, grace_us: int, *, force: bool = False) -> Namespace:
        """Signs with `fresh`, and during the grace also with the secret that it replaces. Like `update`; also
        raises RotationPending within the grace of another rotation."""

        def change(known: Namespace) -> Namespace:
            self.refuse_deleting(name)
            now_us = self._context.clock.now_us()
            sealed = self._sealed_like(known, fresh)
            return known.changed(now_us, known.signing.rotated(sealed, now_us, grace_us, force=force))

        return await self._change_everywhere(name, change)

    def _sealed_like(self, known: Namespace, secret: str) -> str:
        """The signing secret as the namespace has it already, perhaps under a former key, else newly sealed."""
        seals = self._context.seals
        return stored_like(known.signing, secret, sealer(seals, known.name), opener(seals, known.name))

    async def reseal(self, name: str) -> bool:
        """Encrypts the namespace's secrets again under the present key; whether it could open them. Raises NamespaceNotFound,
        Conflict, Unavailable."""
        seal, unseal = sealer(self._context.seals, name), opener(self._context.seals, name)

        def change(known: Namespace) -> Namespace:
            hooks = known.hooks and known.hooks.changed(hooks_sealed(hooks_opened(asdict(known.hooks), unseal), seal))
            signing = known.signing.opened(unseal).opened(seal)
            return known.changed(self._context.clock.now_us(), signing, hooks=hooks)

        try:
            await self._change_everywhere(name, change)
        except SealBroken:
            return False
        return True

    async def mark(self, name: str, job_id: str) -> None:
        """Holds the namespace for the job that deletes it. When this returns, nothing of it begins to fire, and each owner of
        its shards refuses creates and changes from its next batch on. Raises NamespaceNotFound, NamespaceDeleting if another
        job deletes it, Conflict, Unavailable."""

        def change(known: Namespace) -> Namespace:
            if known.deleting not in (None, job_id):
                raise being_deleted(known)
            return known.changed(self._context.clock.now_us(), known.signing, deleting=job_id)

        await self._change_everywhere(name, lambda known: known if known.deleting == job_id else change(known))

    async def unmark(self, name: str, job_id: str) -> None:
        """Ends what `mark` has begun for that job, if it still holds. Raises NamespaceNotFound, Conflict, Unavailable."""

        def change(known: Namespace) -> Namespace:
            return known.changed(self._context.clock.now_us(), known.signing, deleting=None)

        await self._change_everywhere(name, lambda known: change(known) if known.deleting == job_id else known)

    async def remove(self, name: str, job_id: str) -> None:
        """Removes the record of a namespace that this job deletes, if it is still there. When this returns, every node knows
        that the namespace is gone. Raises Unavailable."""
        async with self._namespace_change:
            await self.refresh()
            known = self._context.namespaces.get(name)
            # Otherwise an earlier try has removed it, and another one may have been created since.
            if known is not None and known.deleting == job_id:
                await self.read(self._context.store.delete_records(NAMESPACES, [name]))
                self._context.removed_namespace(name)
        if self.peers is not None:
            await until_known_everywhere(self._context, self._supervisor.membership, self.peers)

    async def _change_everywhere(self, name: str, change: Callable[[Namespace], Namespace]) -> Namespace:
        """Makes the change; returns when every node that may fire a timer applies it (rule 23)."""
        # One at a time on this node, so that changes don't force one another to retry.
        async with self._namespace_change:
            changed = await self._change_namespace(name, change)
        if self.peers is not None:
            await until_known_everywhere(self._context, self._supervisor.membership, self.peers)
        return changed

    async def _change_namespace(self, name: str, change: Callable[[Namespace], Namespace]) -> Namespace:
        """Makes the change to the stored namespace, again if others change it at the same time."""
        context = self._context
        for _ in range(_TRIES_MAX):
            await self.refresh()
            known = self.get(name)
            changed = change(known)
            if changed is known or await self.read(put_namespace(context.store, changed, create=False)):
                if changed is not known:
                    context.changed_namespace(changed)
                return changed
        raise Conflict(f"others changed namespace {name!r} at the same time {_TRIES_MAX} times; try again")

    async def ensure_default(self) -> None:
        """Creates the namespace `default` if it does not exist."""
        if DEFAULT_NAMESPACE not in {namespace.name for namespace in await self.all()}:
            try:
                await self.create(DEFAULT_NAMESPACE)
            except NamespaceExists:
                await self.all()

    # ------------------------------------------------------------------ helpers

    async def read(self, call: Awaitable[T]) -> T:
        """The result of a store call; its errors as Unavailable."""
        try:
            return await self._context.bounded(call)
        except StoreCallFailed as error:
            raise Unavailable(f"the store is not available, try again: {error}") from error


def refuse_version(what: str, present: int, expected: int | None) -> None:
    """Raises what `version_conflict` returns."""
    if (conflict := version_conflict(what, present, expected)) is not None:
        raise conflict


async def until_known_everywhere(context: Context, membership: Membership, peers: Peers) -> None:
    """Returns once no node fires by the namespaces as they were stored before the call (rule 23).

    Each living node is asked to read them. For a node that does not confirm, this waits until its former reading has expired:
    `namespaces_lease`, and a fifth more because clocks run at different rates. Instants of two nodes are never compared.
    """
    clock = context.clock
    until = clock.boottime_us() + context.limits.namespaces_lease_us * 6 // 5
    known = {context.incarnation}
    while (left_us := until - clock.boottime_us()) > 0:
        missing: dict[bytes, str] | None = None
        try:
            # A strong read, after the change: a node missing here reads the namespaces after it has written its member row.
            missing = await _missing(context, membership, known)
            if not missing:
                return
            async with asyncio.timeout(left_us / 1e6):
                known |= await peers.refresh_namespaces(missing)
        except (StoreError, TimeoutError):
            # Then only the time decides.
            pass
        if missing is None or missing.keys() - known:
            await asyncio.sleep(min(_PROPAGATION_PAUSE_US, left_us) / 1e6)


async def _missing(context: Context, membership: Membership, known: set[bytes]) -> dict[bytes, str]:
    """The addresses of the members that have not confirmed, by incarnation. Members presumed dead are left out: their lease
    has expired, and they read the namespaces before they fire again."""
    boot = context.clock.boottime_us()
    return {
        member.incarnation: address_of(member)
        for member in await context.bounded(context.store.members())
        if member.incarnation not in known
        and membership.presumed_dead(member.incarnation, boot) != (member.incarnation, member.counter)
    }
