"""The table of tenants' signing secrets."""

from __future__ import annotations

from collections.abc import Callable, Collection

from sqlalchemy import Connection, Text, bindparam, literal_column, select, update

from tocsin.model.secrets import SigningSecrets, decode_secrets, encode_secrets
from tocsin.stores.service_calls.backend import Database
from tocsin.stores.service_calls.statements import Batch, Query, fields
from tocsin.stores.service_calls.tables import tenant_secrets

_KEY = fields(tenant_secrets, "tenant_id")
_columns = tenant_secrets.c
_NONE = encode_secrets(SigningSecrets())

FIND = Query(lambda given: select(_columns.tenant_id, _columns.secrets).where(given.names(tenant_secrets)), _KEY)
#: Adds a row to lock if there is none.
ADD = Batch(
    tenant_secrets,
    fields(tenant_secrets, "tenant_id", "secrets"),
    lambda given: given.insert(tenant_secrets).on_conflict_do_nothing(),
    key=("tenant_id",),
)
LOCK = Query(lambda given: select(_columns.secrets).where(given.names(tenant_secrets)).with_for_update(), _KEY)
PUT = Query(
    lambda given: (
        update(tenant_secrets).where(given.names(tenant_secrets)).values(secrets=bindparam("signing", type_=Text()))
    ),
    _KEY,
)
ANY = Query(select(literal_column("1")).select_from(tenant_secrets).limit(literal_column("1")))


class SqlTenantSecrets:
    """The ports TenantSecrets of the execution module and of the API module. While no tenant has a secret, nothing is
    read: only one agent at a time uses the database, so it knows."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: Whether any tenant may have a secret; None: not known yet.
        self._some: bool | None = None

    async def find(self, tenant_ids: Collection[str]) -> dict[str, SigningSecrets]:
        if self._some is False:
            return {}
        if self._some is None:
            some = bool(await self._database.read(ANY.fetch))
            # Unless `change` has stored one meanwhile.
            if self._some is None:
                self._some = some
            return await self.find(tenant_ids)
        tenants = [(tenant_id,) for tenant_id in sorted(set(tenant_ids))]
        rows = await self._database.read(lambda connection: FIND.fetch(connection, tenants))
        return {tenant_id: decode_secrets(secrets) for tenant_id, secrets in rows}

    async def change(self, tenant_id: str, change: Callable[[SigningSecrets], SigningSecrets]) -> SigningSecrets:
        self._some = True

        def work(connection: Connection) -> SigningSecrets:
            ADD.count(connection, [(tenant_id, _NONE)])
            ((known,),) = LOCK.fetch(connection, [(tenant_id,)])
            changed = change(decode_secrets(known))
            PUT.count(connection, [(tenant_id,)], signing=encode_secrets(changed))
            return changed

        return await self._database.write(work)
