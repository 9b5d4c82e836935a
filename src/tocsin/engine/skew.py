"""Whether a node's clock has been off the store's for so long that its shards had better ring elsewhere."""

from __future__ import annotations


class SkewWatch:
    """What each heartbeat says of the clock, smoothed: the answer changes once the opposite was said for `settle_us`.

    A node pauses at the first reading that is off (rule 12), and rings again at the first that is right. Handing shards over
    and taking them back is dearer, so that a clock that is stepped now and then must not cause it. The first reading
    counts at once.
    """

    def __init__(self, settle_us: int) -> None:
        self._settle_us = settle_us
        self._lasting: bool | None = None
        self._differs_since: int | None = None

    @property
    def lasting(self) -> bool:
        """Whether the clock is off, and has been for a while."""
        return bool(self._lasting)

    def note(self, *, off: bool, boot_us: int) -> bool:
        """A reading, at this boot time; whether `lasting` has changed by it."""
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
