"""One request to the pages, once it is known who asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tocsin.http.errors import Forbidden
from tocsin.model.access import Role
from tocsin.model.audit import AuditSource
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.ports.audit import Actor
from tocsin.ui.sessions import Visitor

#: Fields of a form that are read; a form of ours has far fewer.
FORM_FIELDS_MAX = 20_000


#: Digits of a number that are read; Python refuses thousands.
_DIGITS_MAX = 18


def whole(text: str) -> int:
    """The whole number that a query or form gives, a greater one cut to its first digits; 0 for anything else."""
    return int(text[:_DIGITS_MAX]) if text.isdecimal() else 0


class Fields:
    """What a query or a form says: names may come several times, and absent is the same as empty."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def get(self, name: str, default: str = "") -> str:
        """The last value, without spaces around it."""
        values = self._values.get(name)
        return values[-1].strip() if values else default

    def exact(self, name: str) -> str:
        """The last value as it was sent."""
        values = self._values.get(name)
        return values[-1] if values else ""

    def all(self, name: str) -> list[str]:
        """Every value, in order, as it was sent."""
        return self._values.get(name, [])

    def __contains__(self, name: str) -> bool:
        return name in self._values


def read_form(body: bytes) -> Fields:
    """The fields of a form as browsers send it; InvalidInput for what isn't one."""
    try:
        text = body.decode()
        return Fields(parse_qsl(text, keep_blank_values=True, max_num_fields=FORM_FIELDS_MAX, errors="strict"))
    except (UnicodeDecodeError, ValueError):
        raise InvalidInput(FieldError("", "the form can't be read")) from None


class Visit:
    """A request, who makes it, and what it says. `fragment`: a script asks for a part of a page."""

    def __init__(
        self,
        request: Request,
        visitor: Visitor,
        cookie: str,
        *,
        now_us: int,
        correlation_id: str,
        renew: Callable[[], Visitor | None],
        address: str = "",
    ) -> None:
        self.request = request
        self.visitor = visitor
        self.cookie = cookie
        #: Who comes with this cookie by now, for answers that last.
        self.renew = renew
        #: The client's, empty where it isn't known.
        self.address = address
        self.form = Fields(())
        #: The form as it was sent.
        self.body = b""
        self.now_us = now_us
        self.correlation_id = correlation_id
        self.query = Fields(request.query_params.multi_items())
        self.fragment = (
            request.headers.get("hx-request") == "true" and "hx-history-restore-request" not in request.headers
        )

    @property
    def actor(self) -> Actor:
        """Who visits, for the audit trail."""
        key = self.visitor.key
        return Actor(None if key is None else key.key_id, self.address, AuditSource.PAGES)

    @property
    def path(self) -> str:
        """The request's path."""
        return self.request.url.path

    @property
    def here(self) -> str:
        """Path and query."""
        query = self.request.url.query
        return f"{self.path}?{query}" if query else self.path

    def named(self, fields: Fields) -> tuple[str, str]:
        """The namespace and id that a form or query names, exactly."""
        return fields.exact("namespace"), fields.exact("id")

    def permit(self, role: Role, namespace: str | None = None) -> None:
        """Raises Forbidden unless the visitor has the role on the namespace, or on the whole service."""
        if self.visitor.may(role, namespace):
            return
        if namespace is None:
            raise Forbidden(f"This needs a key of role {role.value} that is not limited to namespaces.")
        raise Forbidden(f"Your key does not have the role {role.value} on the namespace {namespace!r}.")

    def permit_tenant(self, role: Role, tenant_id: str) -> None:
        """Raises Forbidden unless the visitor has the role for the tenant."""
        if not self.visitor.may_call(role, tenant_id):
            raise Forbidden(f"Your key does not have the role {role.value} for this tenant.")


class NewCookie(RedirectResponse):
    """Leads on, with another cookie: someone has signed in or out."""

    def __init__(self, to: str, cookie: str) -> None:
        super().__init__(to, 303)
        self.cookie = cookie


class Relayed(Response):
    """Another node's answer, as it came: its cookies and headers with it."""

    def __init__(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
        super().__init__(body, status)
        self.raw_headers = list(headers)


Handler = Callable[[Visit], Awaitable[Response]]
