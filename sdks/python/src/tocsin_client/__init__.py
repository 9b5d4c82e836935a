"""Client and webhook receiver for Tocsin, the durable timer service.

    from tocsin_client import Client

    with Client("http://127.0.0.1:8080") as client:
        client.timers.create("orders", "order-17", "https://shop.example/hooks/remind", delay="24h", payload={"order": 17})

`AsyncClient` is the same, awaited; it needs the extra `tocsin-client[async]`. `tocsin_client.receiver` verifies callbacks and
answers them, `tocsin_client.errors` has all errors, and `tocsin_client.testing` starts a server for your tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tocsin_client._core.batches import ItemResult
from tocsin_client._core.ids import new_tenant_id
from tocsin_client._core.tries import Try
from tocsin_client._error_bases import ApiError, TocsinError, TransportError
from tocsin_client._generated.models import (
    CallHook,
    CreateTimer,
    Hook,
    RawBody,
    RetryPolicy,
    Schedule,
    ServiceCall,
    Timer,
)
from tocsin_client._sync.batcher import Batcher
from tocsin_client._sync.client import Client
from tocsin_client._sync.pages import Pages
from tocsin_client._values import UNSET, Duration, Instant, JsonValue, Unset
from tocsin_client._version import __version__

if TYPE_CHECKING:
    from tocsin_client._async.batcher import AsyncBatcher
    from tocsin_client._async.client import AsyncClient
    from tocsin_client._async.pages import AsyncPages

#: Imported at first use: they need aiohttp.
_ASYNCHRONOUS = {"AsyncBatcher": "batcher", "AsyncClient": "client", "AsyncPages": "pages"}

__all__ = [
    "UNSET",
    "ApiError",
    "AsyncBatcher",
    "AsyncClient",
    "AsyncPages",
    "Batcher",
    "CallHook",
    "Client",
    "CreateTimer",
    "Duration",
    "Hook",
    "Instant",
    "ItemResult",
    "JsonValue",
    "Pages",
    "RawBody",
    "RetryPolicy",
    "Schedule",
    "ServiceCall",
    "Timer",
    "TocsinError",
    "TransportError",
    "Try",
    "Unset",
    "__version__",
    "new_tenant_id",
]


def __getattr__(name: str) -> Any:
    if name not in _ASYNCHRONOUS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"tocsin_client._async.{_ASYNCHRONOUS[name]}"), name)
    except ModuleNotFoundError as missing:
        if missing.name != "aiohttp":
            raise
        raise ImportError(f"{name} needs aiohttp: pip install 'tocsin-client[async]'") from missing
