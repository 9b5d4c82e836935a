"""One request to the pages, with the principal that makes it; and the names of its cookies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.model.access import EVERY, Role
from tocsin.model.audit import AuditSource
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.ports.audit import Actor, AuditExport
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.web.http.errors import Forbidden
from tocsin.web.http.hosts import url_of
from tocsin.web.pages.admin.sessions import Principal

#: More fields than this make a form invalid; the pages' own forms have far fewer.
FORM_FIELDS_MAX = 20_000
_HTTPS_PORT = 443
#: Digits of a number that are read; Python refuses to convert thousands.
_DIGITS_MAX = 18


def whole_number(text: str) -> int:
    """The whole number in a query or form, cut to its first digits if it is longer; 0 for any other text."""
    return int(text[:_DIGITS_MAX]) if text.isdecimal() else 0


class Fields:
    """The fields of a query or a form. A name may occur several times; an absent field reads as an empty one."""

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
    """The fields of a URL-encoded form. Raises InvalidInput for any other body."""
    try:
        text = body.decode()
        return Fields(parse_qsl(text, keep_blank_values=True, max_num_fields=FORM_FIELDS_MAX, errors="strict"))
    except (UnicodeDecodeError, ValueError):
        raise InvalidInput(FieldError("", "the form can't be read")) from None


class RequestContext:
    """A request, its principal and its fields. `fragment`: a script requests a part of a page."""

    def __init__(
        self,
        request: Request,
        principal: Principal,
        cookie: str,
        *,
        now_us: int,
        correlation_id: str,
        renew: Callable[[], Principal | None],
        secure: bool,
        address: str = "",
        export: AuditExport | None = None,
    ) -> None:
        self.request = request
        self.principal = principal
        self.cookie = cookie
        #: The cookie's principal at the time of the call, for responses that stay open.
        self.renew = renew
        #: Whether the browser uses https, to a proxy.
        self.secure = secure
        #: The URL of this server as the browser knows it, without a path.
        self.server = url_of(request.headers.get("host"), secure=secure)
        #: The client's address; empty if unknown.
        self.address = address
        self._export = export
        self.form = Fields(())
        #: The form as it was sent.
        self.body = b""
        self._calls: ServiceCalls | None = None
        self.now_us = now_us
        self.correlation_id = correlation_id
        self.query = Fields(request.query_params.multi_items())
        self.fragment = (
            request.headers.get("hx-request") == "true" and "hx-history-restore-request" not in request.headers
        )
        #: Whether it is made while something is typed into the search field of a list.
        self.typing = self.fragment and request.headers.get("hx-trigger") == "q"

    @property
    def calls(self) -> ServiceCalls:
        """The service calls; only for handlers behind the gate of the agent, which sets them."""
        assert self._calls is not None
        return self._calls

    @calls.setter
    def calls(self, calls: ServiceCalls) -> None:
        self._calls = calls

    @property
    def actor(self) -> Actor:
        """The actor that the audit trail records."""
        key = self.principal.key
        if key is None:
            return Actor(None, self.address, AuditSource.PAGES)
        return Actor(key.key_id, self.address, AuditSource.PAGES, key.note)

    def changed(self, operation: str, scope: str, id: str) -> None:
        """To be called when a timer or schedule of a namespace, or a service call of a tenant, was changed, with the name of
        the API's operation that does the same: reports it to the audit export, if there is one."""
        if self._export is not None:
            self._export.changed(operation, self.actor, scope, [id])

    @property
    def scope(self) -> str:
        """The namespace to which the page's address narrows what it shows; empty for all of them."""
        return self.query.exact("namespace").removeprefix(EVERY)

    @property
    def path(self) -> str:
        """The request's path."""
        return self.request.url.path

    def writable(self, fields: Fields) -> tuple[str, str]:
        """The namespace and id in a form or query, exactly as sent. Raises Forbidden unless the principal may change them."""
        namespace = fields.exact("namespace")
        self.permit(Role.WRITE, namespace)
        return namespace, fields.exact("id")

    def permit(self, role: Role, namespace: str | None = None) -> None:
        """Raises Forbidden unless the principal has the role on the namespace; without one, on the whole service."""
        if self.principal.may(role, namespace):
            return
        key = self.principal.key
        if key is not None and key.operations and role is not Role.READ:
            raise Forbidden("Your API key is limited to operations of the API; on the pages it changes nothing.")
        if namespace is None:
            raise Forbidden(f"This requires an API key of role {role.value} that is not limited to namespaces.")
        raise Forbidden(f"Your API key does not have the role {role.value} on the namespace {namespace!r}.")

    def permit_tenant(self, role: Role, tenant_id: str) -> None:
        """Raises Forbidden unless the principal has the role for the tenant."""
        if not self.principal.may_call(role, tenant_id):
            raise Forbidden(f"Your API key does not have the role {role.value} for this tenant.")


class NewCookie(RedirectResponse):
    """A redirect that replaces the cookie, after a sign-in or a sign-out."""

    def __init__(self, to: str, cookie: str) -> None:
        super().__init__(to, 303)
        self.cookie = cookie


class NewCookiePage(HTMLResponse):
    """A page that replaces the cookie and goes on by itself: to another site, which a form's policy forbids a redirect, or
    from one, when no redirect would bring the cookie along."""

    def __init__(self, page: str, cookie: str) -> None:
        super().__init__(page)
        self.cookie = cookie


class Relayed(Response):
    """Another node's response, passed on unchanged with its headers and cookies."""

    def __init__(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
        super().__init__(body, status)
        self.raw_headers = list(headers)


Handler = Callable[[RequestContext], Awaitable[Response]]


def cookie_name(request: Request, suffix: str = "", *, secure: bool) -> str:
    """The name of this server's cookie; `secure`: of one that is sent over https only. It contains the port, because browsers
    share cookies between the ports of a host."""
    port = urlsplit(f"//{request.headers.get('host', '')}").port
    if not secure:
        return f"tocsin{suffix}-{port or 80}"
    return f"__Host-tocsin{suffix}" + (f"-{port}" if port and port != _HTTPS_PORT else "")


def cookie_value(request: Request, name: str) -> str | None:
    """The value of a cookie in the request; None without one. `http.cookies` reads all that anybody sends, and takes seconds
    for some of it in older releases of Python. Of this server's cookies none has an escape."""
    for each in request.headers.get("cookie", "").split(";"):
        sent, _, value = each.strip().partition("=")
        if sent == name:
            # Those that end with an equals sign are sent in quotes.
            return None if "\\" in value else value.strip('"')
    return None
