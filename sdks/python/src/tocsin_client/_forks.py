"""What must not be shared with the process that forked this one: sockets, threads, locks."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewed(Protocol):
    """Something that starts over in a forked process."""

    def renew_in_child(self) -> None:
        """Runs in the new process before anything else does there. No lock may be taken: one that another thread held at the
        fork stays locked."""


_renewed: WeakSet[Renewed] = WeakSet()
#: What the parent goes on using. It is never freed here: that would close it, or wait for a lock that nobody holds.
_of_the_parent: list[object] = []


def renew_after_fork(each: Renewed) -> None:
    """Renews it in processes that are forked from now on."""
    _renewed.add(each)


def leave_to_parent(*things: object) -> None:
    """Keeps things from being closed."""
    _of_the_parent.extend(things)


def _in_child() -> None:
    for each in list(_renewed):
        each.renew_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
