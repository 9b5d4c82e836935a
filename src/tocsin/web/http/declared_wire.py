"""Fields of what may be declared in files: who manages it, and the version that a change expects."""

from __future__ import annotations

from typing import Annotated

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
