"""What files of vectors consist of."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def case_of(name: str, given: Json, expected: Json) -> Json:
    """A case of a file."""
    return {"name": name, "with": given, "expect": expected}
