"""What failures of one cause have in common: the place that was called, and the error without what varies."""

from __future__ import annotations

import re

from tocsin.model.timer import Status, Timer

#: The statuses of ends that failed.
FAILED = frozenset({Status.FAILED, Status.EXPIRED})
#: Between the parts of a failure. No URL and no code has it.
SEPARATOR = "\x1f"
#: How long failures are listed, unless a setting states otherwise.
FAILURE_RETENTION_US = 14 * 86_400 * 1_000_000
#: Characters that are kept of each part: a URL's path can have thousands.
DESTINATION_CHARS_MAX, ERROR_CHARS_MAX = 400, 60

_URL = re.compile(r"(?P<scheme>https?)://(?:[^/?#]*@)?(?P<host>[^/?#]*)(?P<path>[^?#]*)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def failure_of(timer: Timer) -> str:
    """The failure by which ends like this one are grouped: destination and error of a timer or occurrence that failed."""
    return joined_failure(timer.url, timer.last_error)


def joined_failure(url: str, error: str | None) -> str:
    """The failure of a request to a URL that ended with this error."""
    return f"{destination_of(url)}{SEPARATOR}{short_error(error)}"


def split_failure(failure: str) -> tuple[str, str]:
    """Destination and error of a failure."""
    destination, _, error = failure.partition(SEPARATOR)
    return destination, error


def destination_of(url: str) -> str:
    """Origin and path of a URL: without credentials, default port, query and fragment."""
    found = _URL.match(url)
    if found is None:
        return ""
    scheme, host = found["scheme"].lower(), found["host"].lower()
    return f"{scheme}://{host.removesuffix(_DEFAULT_PORTS[scheme])}{found['path'] or '/'}"[:DESTINATION_CHARS_MAX]


def short_error(error: str | None) -> str:
    """The stable code with which an error begins, in words for a status: "HTTP 500", "TIMEOUT"."""
    code = re.split("[:;]", error or "", maxsplit=1)[0].strip()[:ERROR_CHARS_MAX]
    return code.replace("HTTP_", "HTTP ", 1) if code.startswith("HTTP_") else code or "UNKNOWN"
