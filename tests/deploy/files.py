"""What the tests of deployments read from the files in `deploy/`."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tocsin.settings.declared import SETTINGS, env_name
from tocsin.settings.load import OTHER_ENV

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "docker" / "Dockerfile"


def instructions(dockerfile: Path = DOCKERFILE) -> list[tuple[str, str]]:
    """Each instruction of a Dockerfile and its arguments, with continued lines joined and comments left out."""
    lines = [line for line in dockerfile.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines()) if word]


def only(name: str) -> str:
    """The arguments of the instruction that the Dockerfile has once."""
    (found,) = [rest for word, rest in instructions() if word == name]
    return found


def image_variables() -> dict[str, str]:
    """The environment that the image sets."""
    return dict(part.split("=", 1) for part in shlex.split(only("ENV")))


def image_command() -> list[str]:
    """What the image runs without arguments."""
    return [*json.loads(only("ENTRYPOINT")), *json.loads(only("CMD"))]


def unknown_settings(variables: set[str]) -> set[str]:
    """Variables with Tocsin's prefix that are no setting."""
    known = {env_name(field) for field in SETTINGS} | OTHER_ENV
    return {name for name in variables if name.startswith("TOCSIN_")} - known


def config_check(environment: dict[str, str], folder: Path) -> str:
    """What `tocsin config check` reports as wrong in an environment; empty if nothing is."""
    checked = subprocess.run(
        [sys.executable, "-m", "tocsin", "config", "check"],
        env={"PATH": os.environ["PATH"], **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if checked.returncode == 0 else checked.stdout + checked.stderr
