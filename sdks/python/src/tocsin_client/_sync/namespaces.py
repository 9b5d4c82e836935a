# Made from _async/namespaces.py by unasync.py; edit that.
"""Namespaces, and the cluster."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

from tocsin_client._sync.part import Part
from tocsin_client._core.ids import new_key
from tocsin_client._generated.models import (
    CallbackAnswers,
    CallbackBatch,
    Cluster,
    CreateNamespace,
    DeleteNamespace,
    FlowLimits,
    GetNamespace,
    GetStatistics,
    HistoryMode,
    Hook,
    Job,
    JobAnswer,
    Namespace,
    NamespaceList,
    Quotas,
    RetryPolicy,
    RotatedSecret,
    RotateSecret,
    Statistics,
    StatisticsResolution,
    UpdateNamespace,
)
from tocsin_client._values import UNSET, Duration, Instant, Unset


class Namespaces(Part):
    """Namespaces: timers with a secret, a retention and a default retry policy of their own."""

    def create(
        self,
        name: str,
        *,
        num_shards: int | Unset = UNSET,
        history: HistoryMode | Unset = UNSET,
        retention: Duration | Unset = UNSET,
        secret: str | Unset = UNSET,
        answers: CallbackAnswers | Unset = UNSET,
        retry_policy: RetryPolicy | Mapping[str, Any] | Unset = UNSET,
        quotas: Quotas | Mapping[str, Any] | Unset = UNSET,
        limits: FlowLimits | Mapping[str, Any] | Unset = UNSET,
        callback_batch: CallbackBatch | Mapping[str, Any] | Unset = UNSET,
        on_failure: Hook | Mapping[str, Any] | Unset = UNSET,
        on_success: Hook | Mapping[str, Any] | Unset = UNSET,
        on_recovery: Hook | Mapping[str, Any] | Unset = UNSET,
        on_missed: Hook | Mapping[str, Any] | Unset = UNSET,
        on_paused: Hook | Mapping[str, Any] | Unset = UNSET,
        managed_by: str | Unset = UNSET,
    ) -> Namespace:
        """Creates a namespace. NamespaceExists: there is one of this name. A lost answer is not followed by a retry:
        TransportError with `maybe_done`."""
        namespace = CreateNamespace(
            name=name,
            num_shards=num_shards,
            history=history,
            retention=retention,
            secret=secret,
            answers=answers,
            retry_policy=retry_policy,
            quotas=quotas,
            limits=limits,
            callback_batch=callback_batch,
            on_failure=on_failure,
            on_success=on_success,
            on_recovery=on_recovery,
            on_missed=on_missed,
            on_paused=on_paused,
            managed_by=managed_by,
        )
        return self._run(self._ask("createNamespace", Namespace.from_json, namespace.to_json(), safe=False))

    def update(
        self,
        name: str,
        *,
        history: HistoryMode | Unset = UNSET,
        retention: Duration | Unset = UNSET,
        secret: str | None | Unset = UNSET,
        paused: bool | Unset = UNSET,
        answers: CallbackAnswers | Unset = UNSET,
        retry_policy: RetryPolicy | Mapping[str, Any] | None | Unset = UNSET,
        quotas: Quotas | Mapping[str, Any] | None | Unset = UNSET,
        limits: FlowLimits | Mapping[str, Any] | None | Unset = UNSET,
        callback_batch: CallbackBatch | Mapping[str, Any] | None | Unset = UNSET,
        on_failure: Hook | Mapping[str, Any] | None | Unset = UNSET,
        on_success: Hook | Mapping[str, Any] | None | Unset = UNSET,
        on_recovery: Hook | Mapping[str, Any] | None | Unset = UNSET,
        on_missed: Hook | Mapping[str, Any] | None | Unset = UNSET,
        on_paused: Hook | Mapping[str, Any] | None | Unset = UNSET,
        managed_by: str | None | Unset = UNSET,
        expected_version: int | Unset = UNSET,
        dry_run: bool | Unset = UNSET,
    ) -> Namespace:
        """Changes the given fields; None removes `secret`, `retry_policy`, `managed_by`, the quotas, the limits, the
        batch and the hooks. VersionConflict: it has not the expected version."""
        change = UpdateNamespace(
            name=name,
            history=history,
            retention=retention,
            secret=secret,
            paused=paused,
            answers=answers,
            retry_policy=retry_policy,
            quotas=quotas,
            limits=limits,
            callback_batch=callback_batch,
            on_failure=on_failure,
            on_success=on_success,
            on_recovery=on_recovery,
            on_missed=on_missed,
            on_paused=on_paused,
            managed_by=managed_by,
            expected_version=expected_version,
            dry_run=dry_run,
        )
        named = GetNamespace(name=name).to_json()
        return self._run(
            self._put("updateNamespace", Namespace.from_json, change.to_json(), "getNamespace", named)
        )

    def rotate_secret(
        self,
        name: str,
        *,
        secret: str | Unset = UNSET,
        grace: Duration | Unset = UNSET,
        force: bool | Unset = UNSET,
    ) -> RotatedSecret:
        """Signs with a new secret, and during `grace` with the former one, too. Only this answer shows the secret."""
        rotation = RotateSecret(name=name, secret=secret, grace=grace, force=force)
        return self._run(
            self._ask("rotateNamespaceSecret", RotatedSecret.from_json, rotation.to_json(), safe=False)
        )

    def get(self, name: str) -> Namespace:
        """The namespace and its settings. NamespaceNotFound: there is none of this name."""
        return self._run(self._ask("getNamespace", Namespace.from_json, GetNamespace(name=name).to_json()))

    def delete(
        self,
        name: str,
        *,
        cancel_pending: bool | Unset = UNSET,
        rate_per_second: int | Unset = UNSET,
        idempotency_key: str | Unset = UNSET,
        expected_version: int | Unset = UNSET,
    ) -> Job:
        """Deletes a namespace with all that is in it, by a job that goes on without the client. NamespaceNotEmpty: timers or
        schedules are pending, and `cancel_pending` is not set. JobRunning: another job changes something in it.
        VersionConflict: the namespace has not the expected version."""
        wanted = DeleteNamespace(
            name=name,
            cancel_pending=cancel_pending,
            rate_per_second=rate_per_second,
            idempotency_key=new_key() if idempotency_key is UNSET else idempotency_key,
            expected_version=expected_version,
        )
        return (self._run(self._ask("deleteNamespace", JobAnswer.from_json, wanted.to_json()))).job

    def list(self) -> builtins.list[Namespace]:
        """All namespaces that the key may see."""
        found = self._run(self._ask("listNamespaces", NamespaceList.from_json, {}))
        return found.namespaces


class ClusterView(Part):
    """The servers."""

    def get(self) -> Cluster:
        """Nodes and shards."""
        return self._run(self._ask("getCluster", Cluster.from_json))

    def statistics(
        self,
        *,
        namespace: str | Unset = UNSET,
        from_: Instant | Unset = UNSET,
        to: Instant | Unset = UNSET,
        resolution: StatisticsResolution | Unset = UNSET,
    ) -> Statistics:
        """What happened, slot by slot, on all nodes: in a namespace, or in all that the key may see."""
        wanted = GetStatistics(namespace=namespace, from_=from_, to=to, resolution=resolution)
        return self._run(self._ask("getStatistics", Statistics.from_json, wanted.to_json()))
