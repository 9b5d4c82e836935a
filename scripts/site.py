"""Builds the documentation site into build/site: one folder for this minor release, the same as `latest`, and versions.json.

    python scripts/site.py OUTPUT

Run by the Python that has MkDocs: `make site`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build(output: Path) -> None:
    """Builds this release's folder. Other releases' folders in `output` stay. Exits with what is wrong."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    minor = ".".join(version.split(".")[:2])
    # Not --quiet, which would hide the warnings from --strict, too.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(ROOT / "mkdocs.yml")]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        [*command, "--site-dir", str(output / minor)], env=env, capture_output=True, text=True, check=False
    )
    if built.returncode:
        sys.exit(built.stdout + built.stderr)
    shutil.rmtree(output / "latest", ignore_errors=True)
    shutil.copytree(output / minor, output / "latest")
    known = sorted(
        (path.name for path in output.iterdir() if path.is_dir() and path.name != "latest"),
        key=lambda name: [int(part) for part in name.split(".")],
        reverse=True,
    )
    versions = [{"version": name, "title": name, "aliases": ["latest"] if name == minor else []} for name in known]
    (output / "versions.json").write_text(json.dumps(versions) + "\n")
    (output / "index.html").write_text('<!doctype html><meta http-equiv="refresh" content="0; url=latest/">\n')


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    build(folder)
