"""`/keys`: the API keys as a table, a form for a new one, and revoking.

As in the API, managing keys requires an admin key even where nothing else does: a key outlives the state in which it was
created.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.keys import ApiKeys, make
from tocsin.model.access import ApiKey, Role
from tocsin.model.audit import AuditAction, Detail
from tocsin.model.errors import FieldError, InvalidInput, KeyNotFound, TooManyKeys
from tocsin.model.instants import US_PER_DAY, format_instant, parse_duration
from tocsin.web.http import administration as wire
from tocsin.web.http.access import require_grant
from tocsin.web.http.errors import Forbidden
from tocsin.web.http.instants import read
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.admin.tables import table_part
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.filters import split_tags
from tocsin.web.pages.forms import by_field, duration
from tocsin.web.pages.presentation import State
from tocsin.web.pages.site import Part, Site, route

_NOTICES = {"revoked": "Key revoked. Requests with it are refused, and its sign-ins have ended."}
_ROLES = {
    Role.READ: "read: sees everything, changes nothing",
    Role.WRITE: "write: also creates, changes and cancels timers, schedules and calls",
    Role.ADMIN: "admin: also manages namespaces, secrets and keys",
}
_LABELS = {
    "name": "Name",
    "namespaces": "Namespaces",
    "tenants": "Tenants",
    "operations": "Operations",
    "sources": "Sources",
    "expiresAt": "Expires after",
}
_LISTS = ("namespaces", "tenants", "operations", "sources")
_FIELDS = ("role", "name", "namespaces", "tenants", "operations", "sources", "expires")
#: From this time before its expiry on a key is shown as expiring soon, as in the command's list.
_SOON_US = 14 * US_PER_DAY

_create_reader = JsonReader(wire.CreateKey)


class Keys(Part):
    """The table, and what changes it. `operations` are the names of all to which a key can be limited."""

    def __init__(self, site: Site, keys: ApiKeys, operations: Collection[str]) -> None:
        super().__init__(site)
        self._keys = keys
        self._operations = operations

    @route("GET", "/keys")
    async def table(self, context: RequestContext) -> Response:
        """All keys, the newest first; without a key, how to create the first one."""
        context.permit(Role.ADMIN)
        caller = context.principal.key
        keys = [] if caller is None else (await self._keys.seen_by(caller))[::-1]
        return self._pages.page(
            "admin/keys.html",
            context,
            title="Keys",
            part=table_part(context, keys, lambda key: key.key_id, _text),
            caller_key=caller,
            uses={} if caller is None else await self._keys.uses(),
            state_of_key=partial(_state, context.now_us),
            notice_text=_NOTICES.get(context.query.get("notice"), ""),
        )

    @route("GET", "/keys/new")
    async def new(self, context: RequestContext) -> Response:
        """The form for a new key."""
        _caller(context)
        return self._form(context, dict.fromkeys(_FIELDS, "") | {"role": "write"})

    @route("POST", "/keys/new")
    async def create(self, context: RequestContext) -> Response:
        """Creates a key. Only this response shows its secret."""
        caller = _caller(context)
        form = {name: context.form.get(name) for name in _FIELDS}
        try:
            key, secret = make(wire.key_request(_sent(form, context.now_us)), context.now_us, self._operations)
            require_grant(caller, key)
            await self._keys.add(key, partial(self._record, context))
        except (InvalidInput, TooManyKeys, Forbidden) as error:
            return self._form(context, form, error)
        return self._pages.page("admin/key_created.html", context, title="New key", key=key, secret=secret)

    @route("GET", "/keys/revoke")
    async def ask(self, context: RequestContext) -> Response:
        """Asks for confirmation: revoking can't be undone."""
        caller = _caller(context)
        key_id = context.query.exact("key")
        key = next((each for each in await self._keys.seen_by(caller) if each.key_id == key_id), None)
        if key is None:
            raise KeyNotFound(f"no key has the id {key_id!r}")
        return self._pages.page("admin/key_revoke.html", context, title="Revoke key", key=key, caller_key=caller)

    @route("POST", "/keys/revoke")
    async def revoke(self, context: RequestContext) -> Response:
        """Revokes a key, which ends its sign-ins."""
        await self._keys.revoke(context.form.exact("key"), _caller(context), partial(self._record, context))
        return RedirectResponse("/keys?notice=revoked", 303)

    def _form(self, context: RequestContext, form: dict[str, str], problem: Exception | None = None) -> Response:
        errors = by_field(problem)
        return self._pages.page(
            "admin/key_new.html",
            context,
            200 if problem is None else 400 if errors else 409,
            title="New key",
            form=form,
            roles=_ROLES,
            errors=errors,
            problem="" if problem is None or errors else str(problem),
            labels=_LABELS,
            first_invalid=next((each for each in _LABELS if each in errors), ""),
        )

    async def _record(
        self, context: RequestContext, action: AuditAction, key_id: str, about: dict[str, Detail]
    ) -> None:
        await self._site.audit.write(action, context.actor, key_id, about)


def _caller(context: RequestContext) -> ApiKey:
    """The admin key that the principal has signed in with. Raises Forbidden."""
    context.permit(Role.ADMIN)
    if context.principal.key is None:
        raise Forbidden("Managing keys requires a sign-in with an admin key, even where nothing else requires one.")
    return context.principal.key


def _sent(form: dict[str, str], now_us: int) -> wire.CreateKey:
    """The API request for a form. Raises InvalidInput."""
    body: dict[str, Any] = {"role": form["role"]}
    body |= {"name": form["name"]} if form["name"] else {}
    body |= {name: names for name in _LISTS if (names := split_tags(form[name]))}
    if form["expires"]:
        errors: list[FieldError] = []
        lifetime_us = read(parse_duration, "expiresAt", duration(form["expires"]), errors)
        if errors:
            raise InvalidInput(*errors)
        body["expiresAt"] = format_instant(now_us + lifetime_us)
    return _create_reader.read(msgspec.json.encode(body))


def _text(key: ApiKey) -> str:
    """What a search for a key reads."""
    limits = (*key.namespaces, *key.tenants, *key.operations, *key.sources)
    return "\n".join((key.key_id, key.note, key.role.value, *limits))


def _state(now_us: int, key: ApiKey) -> State:
    if key.expired(now_us):
        return State("expired", "expired")
    return State("expires soon", "late") if key.expired(now_us + _SOON_US) else State("active", "done")
