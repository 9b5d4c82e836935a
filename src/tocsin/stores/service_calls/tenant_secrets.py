"""The table of tenants' signing secrets."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tocsin.model.secrets import SigningSecrets, decode_secrets, encode_secrets
from tocsin.stores.service_calls.statements import Database, Query, Session

_NONE = encode_secrets(SigningSecrets())

FIND = Query(
    "SELECT tenant_id, secrets FROM tenant_secrets WHERE tenant_id IN (SELECT given.tenant_id FROM GIVEN)",
    given=("tenant_id",),
)
#: Adds a row to lock if there is none.
ADD = Query("INSERT INTO tenant_secrets (tenant_id, secrets) VALUES (:tenant, :secrets) ON CONFLICT DO NOTHING")
LOCK = Query("SELECT secrets FROM tenant_secrets WHERE tenant_id = :tenant FOR UPDATE")
PUT = Query("UPDATE tenant_secrets SET secrets = :secrets WHERE tenant_id = :tenant")
ANY = Query("SELECT 1 FROM tenant_secrets LIMIT 1")


class SqlTenantSecrets:
    """The port TenantSecrets. While no tenant has a secret, nothing is read: only one agent at a time uses the database, so
    it knows."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: Whether any tenant may have a secret; None: not known yet.
        self._some: bool | None = None

    async def find(self, tenant_ids: Collection[str]) -> dict[str, SigningSecrets]:
        if self._some is False:
            return {}
        if self._some is None:
            some = bool(await self._database.read(ANY.fetch))
            # Unless `change` has stored one since.
            if self._some is None:
                self._some = some
            return await self.find(tenant_ids)
        tenants = [(tenant_id,) for tenant_id in sorted(set(tenant_ids))]
        rows = await self._database.read(lambda session: FIND.fetch(session, tenants))
        return {tenant_id: decode_secrets(secrets) for tenant_id, secrets in rows}

    async def change(self, tenant_id: str, change: Callable[[SigningSecrets], SigningSecrets]) -> SigningSecrets:
        self._some = True

        async def work(session: Session) -> SigningSecrets:
            await ADD.count(session, tenant=tenant_id, secrets=_NONE)
            ((known,),) = await LOCK.fetch(session, tenant=tenant_id)
            changed = change(decode_secrets(known))
            await PUT.count(session, tenant=tenant_id, secrets=encode_secrets(changed))
            return changed

        return await self._database.write(work)
