"""Wall clocks of processes under test that can be set while they run, by libfaketime."""

from __future__ import annotations

from pathlib import Path

from tests.support.needs import lacking

#: Where packages put it, by architecture.
_PLACES = ("/usr/lib", "/usr/local/lib", "/usr/lib64")


class SettableClock:
    """The wall clock of processes that are started with `env`. It goes as fast as the machine's, `set_off` by some seconds;
    what they take for the time since the boot doesn't change."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.env = {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self.set_off(0)

    def set_off(self, seconds: float) -> None:
        """From now on it is ahead of the machine's by so much, or behind it if negative."""
        whole = self._file.with_suffix(".new")
        whole.write_text(f"{seconds:+f}\n")
        # In one step, so that readers see the old or the new value as a whole.
        whole.replace(self._file)


def _library() -> Path:
    found = [library for place in _PLACES for library in Path(place).glob("**/faketime/libfaketime.so.1")]
    if not found:
        lacking("faketime", "libfaketime is not installed (Debian's libfaketime has it)")
    return found[0]
