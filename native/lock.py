"""Makes Cargo.lock with exactly the crates that crates.txt names, by version and checksum. Cargo's own file also has the
registry's address, which differs from machine to machine, so that it is not kept.

    python native/lock.py            make Cargo.lock; exit code 1 if other crates than those of crates.txt would be used
    python native/lock.py --update   write the newest versions that Cargo.toml permits into crates.txt
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

_HERE = Path(__file__).parent
_LOCK, _PINS = _HERE / "Cargo.lock", _HERE / "crates.txt"
#: A crate's name, version and checksum.
Crate = tuple[str, str, str]


def _locked() -> set[Crate]:
    """The crates of Cargo.lock; none if there is no such file."""
    if not _LOCK.is_file():
        return set()
    packages = tomllib.loads(_LOCK.read_text(encoding="utf-8"))["package"]
    return {(each["name"], each["version"], each["checksum"]) for each in packages if "source" in each}


def _pinned() -> set[Crate]:
    lines = _PINS.read_text(encoding="utf-8").splitlines()
    return {(name, version, checksum) for name, version, checksum in map(str.split, lines)}


def _cargo(*arguments: str) -> None:
    subprocess.run(["cargo", *arguments, "--quiet"], cwd=_HERE, check=True)


def _make(pins: set[Crate]) -> None:
    """Has Cargo choose the versions, and sets those that differ. One crate at a time: each may bring others along."""
    _cargo("generate-lockfile")
    tried: set[str] = set()
    while wrong := sorted((name, version) for name, version, _ in pins - _locked() if name not in tried):
        name, version = wrong[0]
        tried.add(name)
        if any(name == each for each, _, _ in _locked()):
            _cargo("update", "--package", name, "--precise", version)


def main() -> int:
    """Makes the lock or the pins; returns the exit code."""
    if sys.argv[1:] == ["--update"]:
        _cargo("generate-lockfile")
        _PINS.write_text("".join(f"{' '.join(crate)}\n" for crate in sorted(_locked())), encoding="utf-8")
        return 0
    pins = _pinned()
    try:
        if _locked() != pins:
            _make(pins)
    except subprocess.CalledProcessError as error:
        # Cargo has printed why.
        return error.returncode
    if wrong := sorted(_locked() ^ pins):
        names = ", ".join(f"{name} {version}" for name, version, _ in wrong)
        print(
            f"native/Cargo.lock does not have the crates of crates.txt: {names}. After review: --update",
            file=sys.stderr,
        )
        _LOCK.unlink()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
