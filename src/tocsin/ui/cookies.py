"""Names of cookies. Cookies don't know ports, and one machine may run two servers."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.requests import Request

from tocsin.http.hosts import Hosts


def cookie_name(hosts: Hosts, request: Request, suffix: str = "") -> tuple[str, bool]:
    """The name of this server's cookie, and whether it is for https only."""
    host = request.headers.get("host", "")
    if hosts.secure(host):
        return f"__Host-tocsin{suffix}", True
    return f"tocsin{suffix}-{urlsplit(f'//{host}').port or 80}", False


def cookie_value(request: Request, name: str) -> str | None:
    """What the browser sent under that name."""
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return found.value if found is not None else None
