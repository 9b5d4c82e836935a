"""The Dockerfile. `make test-image` builds and runs it; here is what needs no engine."""

from __future__ import annotations

import fnmatch
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.deploy.files import DOCKERFILE, ROOT, image_command, image_variables, instructions, only, unknown_settings

#: What the image's Python does in the test: pip looks whether it could install the wheel, and changes nothing.
PYTHON = """#!/bin/sh
case "$*" in
  *" uninstall "*) ;;
  *" install "*) PIP_DRY_RUN=1 PIP_IGNORE_INSTALLED=1 PIP_DISABLE_PIP_VERSION_CHECK=1 exec "{python}" "$@" ;;
  *) exec "{python}" "$@" ;;
esac
"""


def wheel(folder: Path, name: str, tags: str) -> None:
    """An empty package."""
    info = f"{name}-0.1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-0.1.0-{tags}.whl", "w") as file:
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 0.1.0\n")
        file.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tags}\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.mark.wide  # pip is slow to start.
@pytest.mark.parametrize("codec", [None, "cp311-abi3-macosx_11_0_arm64", "py3-none-any"])
def test_the_image_has_the_codec_if_there_is_one_for_its_platform(tmp_path: Path, codec: str | None) -> None:
    built = tmp_path / "build"
    image = tmp_path / "tocsin"
    for folder in (built, image / "bin", image / "lib/python3/site-packages/botocore/data"):
        folder.mkdir(parents=True)
    (image / "bin" / "python").write_text(PYTHON.format(python=sys.executable))
    (image / "bin" / "python").chmod(0o700)
    wheel(built, "tocsin", "py3-none-any")
    if codec is not None:
        wheel(built, "tocsin_native", codec)
    (script,) = [rest for word, rest in instructions() if word == "RUN" and "--no-index" in rest]
    script = script.replace("/opt/tocsin", str(image)).replace("/build/", f"{built}/")
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Would install tocsin-0.1.0" in ran.stdout
    has_codec = codec == "py3-none-any"
    assert ("Would install tocsin-native" in ran.stdout, "without the compiled codec" in ran.stdout) == (
        has_codec,
        not has_codec,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder in which make finds all that it needs built already, the codec too, but for what is in dist."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    sources = ["pyproject.toml", "web/package-lock.json", "web/.npmrc", "web/node_modules/.package-lock.json"]
    sources += [f"requirements/{name}.txt" for name in ("base", "build", "main", "dev", "native")]
    sources += ["sdks/python/pyproject.toml", "src/tocsin/web/pages/static/manifest.json"]
    sources += [f"native/{name}" for name in ("Cargo.toml", "pyproject.toml", "crates.txt", "lock.py")]
    for name in [*sources, ".venv/.base", ".venv/.main", ".venv/.dev", ".venv/.native"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def planned(checkout: Path, target: str, programs: Path | None = None) -> str:
    """What make would run for it, with these programs and no others."""
    environment = os.environ if programs is None else os.environ | {"PATH": str(programs)}
    make = str(shutil.which("make"))
    ran = subprocess.run(
        [make, "--dry-run", target], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_codec_is_built_again_if_its_wheel_is_gone(checkout: Path) -> None:
    assert "maturin build" in planned(checkout, "native")
    (checkout / "dist").mkdir()
    (checkout / "dist" / "tocsin_native-0.1.0-cp311-abi3-linux_x86_64.whl").touch()
    assert "maturin build" not in planned(checkout, "native")


def test_the_image_is_built_without_cargo(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    programs = tmp_path_factory.mktemp("programs")
    (programs / "make").symlink_to(str(shutil.which("make")))
    assert "maturin build" not in planned(checkout, "image", programs)
    (programs / "cargo").symlink_to("/bin/true")
    assert "maturin build" in planned(checkout, "image", programs)


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
