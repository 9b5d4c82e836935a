"""The labels of tenants: a tenant is a UUID, and needs no other setup, so people give it a name for the pages."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.administration import TENANT_LABELS, put_tenant_label, tenant_labels
from tocsin.model.errors import StoreError
from tocsin.ports.records import Records


class TenantLabels:
    """The labels, kept in memory as long as no node has changed one. Without `records` no tenant has a label."""

    def __init__(self, records: Records | None, most: int) -> None:
        self._records = records
        self._most = most
        self._version = -1
        self._labels: Mapping[str, str] = {}

    async def all(self) -> Mapping[str, str]:
        """The labels by tenant. While the store does not answer, they are those that this node last read: a page of calls is
        of use without them."""
        if self._records is None:
            return {}
        try:
            (version,) = await self._records.records_versions(TENANT_LABELS)
            if version != self._version:
                self._labels = await tenant_labels(self._records, self._most)
                self._version = version
        except StoreError:
            return self._labels
        return self._labels

    async def put(self, tenant_id: str, label: str) -> None:
        """Stores a label; an empty one removes it. Raises StoreError."""
        if self._records is not None:
            await put_tenant_label(self._records, tenant_id, label)
