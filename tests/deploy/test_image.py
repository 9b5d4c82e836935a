"""The Dockerfile. `make test-image` builds and runs it; here is what needs no engine."""

from __future__ import annotations

import fnmatch
import shlex
import subprocess
import sysconfig
from pathlib import Path

from tests.deploy.files import DOCKERFILE, ROOT, image_command, image_variables, instructions, only, unknown_settings


def test_hadolint_accepts_the_dockerfile():
    hadolint = Path(sysconfig.get_path("scripts")) / "hadolint"
    checked = subprocess.run([str(hadolint), str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_build_context_has_what_is_copied_and_nothing_else():
    ignored, *admitted = [
        line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")
    ]
    copied = {
        source
        for name, rest in instructions()
        if name == "COPY" and "--from=" not in rest
        for source in [word for word in shlex.split(rest) if not word.startswith("--")][:-1]
    }
    assert ignored == "*"
    assert {line.removeprefix("!") for line in admitted} == copied
    assert all(source.startswith("dist/") or list(ROOT.glob(source)) for source in copied)
    assert not any(fnmatch.fnmatch("data/tocsin.db", pattern) for pattern in copied)


def test_the_image_runs_serve_as_an_unprivileged_user():
    assert image_command() == ["/opt/tocsin/bin/tocsin", "serve"]
    assert only("USER") == "10001:10001"
    assert only("VOLUME") == only("WORKDIR") == image_variables()["TOCSIN_DATA_DIR"]
    assert unknown_settings(set(image_variables())) == set()
