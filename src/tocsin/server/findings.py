"""What the checks of `tocsin doctor` report."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

#: How long a store may take to answer at all.
STORE_TIMEOUT_S = 30.0


class Verdict(StrEnum):
    """What a check found. Only `fail` makes the command fail."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """One line: what was checked, what was found, and what to do about it."""

    check: str
    verdict: Verdict
    text: str
    mend: str = ""
