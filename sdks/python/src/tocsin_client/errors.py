"""All errors: a class for each of the server's codes, below a class for each kind of status."""

from tocsin_client._error_bases import (
    ApiError,
    BadField,
    BatcherClosed,
    BatcherFull,
    Conflict,
    DeadlineExceeded,
    Forbidden,
    InvalidArgument,
    InvalidInput,
    InvalidType,
    NotFound,
    Overloaded,
    ServerError,
    TocsinError,
    TransportError,
    Unauthenticated,
    Unavailable,
    WaitTimeout,
)
from tocsin_client._generated import errors as _codes
from tocsin_client._generated.errors import *  # noqa: F403

__all__ = [
    "ApiError",
    "BadField",
    "BatcherClosed",
    "BatcherFull",
    "Conflict",
    "DeadlineExceeded",
    "Forbidden",
    "InvalidArgument",
    "InvalidInput",
    "InvalidType",
    "NotFound",
    "Overloaded",
    "ServerError",
    "TocsinError",
    "TransportError",
    "Unauthenticated",
    "Unavailable",
    "WaitTimeout",
]
__all__ += _codes.__all__
