"""Fields that may be absent: UNSET in requests and answers, None everywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import UNSET, UnsetType

T = TypeVar("T")
D = TypeVar("D")


def or_none(value: T | UnsetType) -> T | None:
    """A field of a request; None if it is absent."""
    return None if value is UNSET else value


def or_default(value: T | UnsetType, default: D) -> T | D:
    """A field of a request, or what holds without it."""
    return default if value is UNSET else value


def or_absent(value: T | None) -> T | UnsetType:
    """A field of an answer, which is absent for None."""
    return UNSET if value is None else value


def present(fields: Mapping[str, T | UnsetType]) -> dict[str, T]:
    """The fields that are not absent."""
    return {name: value for name, value in fields.items() if value is not UNSET}
