"""The proxy that the environment names."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from tocsin_client._error_bases import InvalidArgument


def proxy_of(base: str) -> str | None:
    """The proxy for a URL by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, or as the operating system has it; None: there
    is none. InvalidArgument: it is of another kind, such as SOCKS."""
    parts = urlsplit(base)
    if proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or "://" not in proxy:
        return f"http://{proxy}" if proxy else None
    scheme = proxy.partition("://")[0].lower()
    if scheme not in ("http", "https"):
        raise InvalidArgument(
            f"the environment's proxy has the scheme {scheme}, which is not supported; give an http_client of yours that "
            "uses it, or put the server into NO_PROXY"
        )
    return proxy


def credentials_of(proxy: str) -> tuple[str, str] | None:
    """Name and password in a proxy's URL."""
    parts = urlsplit(proxy)
    return None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
