"""The proxy that the environment names."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass


def proxy_of(base: str) -> str | None:
    """The proxy for a URL by HTTP_PROXY, HTTPS_PROXY and NO_PROXY, or as the operating system has it; None: there is none."""
    parts = urlsplit(base)
    if proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def credentials_of(proxy: str) -> tuple[str, str] | None:
    """Name and password in a proxy's URL."""
    parts = urlsplit(proxy)
    return None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
