"""Fields that may be absent: UNSET in requests and answers, None everywhere else."""

from __future__ import annotations

from typing import TypeVar

from msgspec import UNSET, UnsetType

T = TypeVar("T")


def or_none(value: T | UnsetType) -> T | None:
    """A field of a request; None if it is absent."""
    return None if isinstance(value, UnsetType) else value


def or_default(value: T | UnsetType, default: T) -> T:
    """A field of a request, or what holds without it."""
    return default if isinstance(value, UnsetType) else value


def or_absent(value: T | None) -> T | UnsetType:
    """A field of an answer, which is absent for None."""
    return UNSET if value is None else value
