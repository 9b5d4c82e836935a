"""Whether a node's clock has differed from the store's for so long that other nodes should take its shards."""

from __future__ import annotations


class SkewWatch:
    """Smooths the heartbeats' clock readings: `lasting` changes only after all readings of `settle_us` contradicted it.

    A node pauses at the first reading that is off (rule 12), and fires again at the first that is right. Handing shards over
    and taking them back costs more, so an occasional step of the clock must not cause it. The first reading counts at
    once.
    """

    def __init__(self, settle_us: int) -> None:
        self._settle_us = settle_us
        self._lasting: bool | None = None
        self._differs_since: int | None = None

    @property
    def lasting(self) -> bool:
        """Whether the clock is off and has been for `settle_us`."""
        return bool(self._lasting)

    def note(self, *, off: bool, boot_us: int) -> bool:
        """Takes a reading at this boot time; returns whether it changed `lasting`."""
        if off == self._lasting:
            self._differs_since = None
            return False
        if self._lasting is None:
            self._lasting = off
            return off
        if self._differs_since is None:
            self._differs_since = boot_us
        if boot_us - self._differs_since < self._settle_us:
            return False
        self._lasting, self._differs_since = off, None
        return True
