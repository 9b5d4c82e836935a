"""Fields of what may be declared in files: who manages it, and the version that a change expects; and pages of it by name."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from tocsin.model.errors import FieldError
from tocsin.model.opaque import from_opaque
from tocsin.web.http import constraints as limits
from tocsin.web.http.wire import about

ManagedBy = Annotated[
    str, about("The declaration that it comes from, such as the name of a repository.", "shop"), limits.NAME
]
Version = Annotated[int, about("1, and one more with each change.", 1)]
ExpectedVersion = Annotated[
    int,
    about("The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.", 1),
    limits.Constraint({"minimum": 0}, (), lambda _, value: None if value >= 0 else "is negative; give 0 or more"),
]
DryRun = Annotated[bool, about("Writes nothing: the response shows what would be written. Default false.")]


def name_after(cursor: str | UnsetType, what: str, errors: list[FieldError]) -> str:
    """The name after which a page begins; empty for the first page. Another list's cursor is added to the errors."""
    if cursor is not UNSET:
        try:
            return from_opaque(cursor).decode("ascii")
        except ValueError:
            reason = f"is not a nextCursor of this list; leave it out to start at the first {what}"
            errors.append(FieldError("cursor", reason))
    return ""
