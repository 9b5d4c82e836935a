"""Installs each peer into a folder of its own below build/peers, from a lock file with hashes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_INSTALLED = _HERE.parents[1] / "build" / "peers"
_JAVASCRIPT = ("package.json", "package-lock.json", ".npmrc", "bullmq.mjs")


class PeerUnavailable(Exception):
    """This machine has no such peer; the message has the reason."""


def python_of(name: str) -> Path:
    """The Python of a peer's virtual environment, which is made if it is missing or older than its lock file. Raises
    PeerUnavailable."""
    lock, folder = _HERE / f"requirements-{name}.txt", _INSTALLED / name
    python, present = folder / "bin" / "python", folder / "installed.txt"
    if not present.exists() or present.read_bytes() != lock.read_bytes():
        _run(sys.executable, "-m", "venv", "--clear", folder)
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _run(*pip, "--require-hashes", "-r", lock)
        shutil.copy(lock, present)
    return python


def bullmq() -> tuple[str, Path]:
    """Node.js and the program of BullMQ, beside its packages. Raises PeerUnavailable."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise PeerUnavailable("there is no Node.js with npm")
    folder = _INSTALLED / "bullmq"
    present = folder / "node_modules" / ".package-lock.json"
    lock = _HERE / "js" / "package-lock.json"
    current = present.exists() and (folder / lock.name).read_bytes() == lock.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    for file in _JAVASCRIPT:
        shutil.copy(_HERE / "js" / file, folder / file)
    if not current:
        _run(npm, "ci", "--loglevel=error", cwd=folder)
    return node, folder / "bullmq.mjs"


def environment() -> dict[str, str]:
    """The variables under which a peer's Python finds the programs."""
    return {**os.environ, "PYTHONPATH": str(_HERE.parents[1])}


def _run(*words: str | Path, cwd: Path | None = None) -> None:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "no reason").splitlines()[-1]
        raise PeerUnavailable(f"{Path(words[0]).name} failed: {reason}")
