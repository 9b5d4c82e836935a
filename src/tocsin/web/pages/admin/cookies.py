"""Cookie names. They contain the port, because browsers share cookies between the ports of a host."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.requests import Request

from tocsin.web.http.hosts import Hosts


def cookie_name(hosts: Hosts, request: Request, suffix: str = "") -> tuple[str, bool]:
    """The name of this server's cookie, and whether it is sent over HTTPS only."""
    host = request.headers.get("host", "")
    if hosts.secure(host):
        return f"__Host-tocsin{suffix}", True
    return f"tocsin{suffix}-{urlsplit(f'//{host}').port or 80}", False


def cookie_value(request: Request, name: str) -> str | None:
    """The value of a cookie in the request; None without one."""
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return found.value if found is not None else None
