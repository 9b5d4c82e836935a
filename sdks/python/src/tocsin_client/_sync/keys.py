# Made from _async/keys.py by unasync.py; edit that.
"""API keys."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from tocsin_client._sync.part import Part
from tocsin_client._core import flows
from tocsin_client._generated.models import CreatedKey, CreateKey, KeyList, KeyRole, ShownKey
from tocsin_client._values import UNSET, Instant, Unset


class Keys(Part):
    """API keys, within the scope of the client's own key, which has the role admin."""

    def create(
        self,
        role: KeyRole,
        *,
        name: str | Unset = UNSET,
        namespaces: Sequence[str] | Unset = UNSET,
        tenants: Sequence[str] | Unset = UNSET,
        expires_at: Instant | Unset = UNSET,
        operations: Sequence[str] | Unset = UNSET,
        sources: Sequence[str] | Unset = UNSET,
    ) -> CreatedKey:
        """Creates a key; only this answer shows it. A lost answer is not followed by a retry: TransportError with
        `maybe_done`."""
        key = CreateKey(
            role=role,
            name=name,
            namespaces=namespaces,
            tenants=tenants,
            expires_at=expires_at,
            operations=operations,
            sources=sources,
        )
        return self._run(self._ask("createKey", CreatedKey.from_json, key.to_json(), safe=False))

    def list(self) -> builtins.list[ShownKey]:
        """The keys, oldest first, including expired ones."""
        found = self._run(self._ask("listKeys", KeyList.from_json, {}))
        return found.keys

    def revoke(self, key_id: str) -> None:
        """Revokes a key: other nodes refuse it a moment later. KeyNotFound: there is none with this id."""
        self._run(flows.revoke_key(self._session, key_id, self._options))
