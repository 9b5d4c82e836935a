"""Listening sockets."""

from __future__ import annotations

import socket

from tocsin.model.errors import ConfigError


def url_of(host: str, port: int) -> str:
    """Where a server on this address answers."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bind(host: str, port: int, setting: str = "port") -> socket.socket:
    """A bound socket; ConfigError names the address, and the setting of the port."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise ConfigError(f"host: {host!r} is neither an address nor a name that can be resolved ({error})") from error
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise ConfigError(f"{setting}: can't listen on {host}:{port}: {error.strerror}") from error
    listener.setblocking(False)
    return listener
