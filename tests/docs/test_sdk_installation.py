"""What the pages of the SDKs instruct until the first release, where it takes a build: typed in a copy of the checkout, whose
packages a program then uses. The pages of Python and Go are typed by test_pages.py and sdks/go/tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks_of
from tests.support.needs import lacking

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def copied(language: str, folder: Path) -> Path:
    """A checkout that has nothing but the SDK, unbuilt."""
    built = shutil.ignore_patterns("node_modules", "dist", "target", "*.tgz")
    shutil.copytree(ROOT / "sdks" / language, folder / "checkout/sdks" / language, ignore=built)
    return folder / "checkout"


def instructed(language: str) -> str:
    """The commands after "Until the first release"."""
    page = f"docs/sdks/{language}.md"
    begin = (ROOT / page).read_text().split("**Until the first release**")[0].count("\n")
    return next(block.text for block in blocks_of(page) if block.line > begin and block.language == "sh")


def linked(source: str, target: str) -> None:
    """A copy that takes no room, where the file system allows it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def typed(commands: str, folder: Path, **env: str) -> str:
    ran = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_typescript(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        lacking("node", "there is no npm")
    program = tmp_path / "program"
    program.mkdir()
    # npm's cache has the packages where the SDK was built once.
    env = {
        "TOCSIN": str(copied("typescript", tmp_path)),
        "npm_config_prefer_offline": "true",
        "npm_config_audit": "false",
    }
    typed(instructed("typescript"), program, **env)
    imported = typed(
        "node --input-type=module -e 'import { Client } from \"tocsin-client\"; console.log(Client.name)'", program
    )
    assert imported == "Client\n"


def test_java(tmp_path: Path) -> None:
    for name in ("java", "javac", "mvn"):
        if shutil.which(name) is None:
            lacking("java", f"there is no {name} (Debian: default-jdk-headless, maven)")
    # A repository of its own, which begins with links to what was fetched before: the machine's stays as it is.
    known, own = Path.home() / ".m2/repository", tmp_path / "repository"
    own.mkdir()
    if known.is_dir():
        shutil.copytree(known, own, copy_function=linked, dirs_exist_ok=True, ignore=shutil.ignore_patterns("tocsin"))
    env = {"MAVEN_OPTS": f"{os.environ.get('MAVEN_OPTS', '')} -Dmaven.repo.local={own}"}
    typed(instructed("java"), copied("java", tmp_path), **env)
    page = (ROOT / "docs/sdks/java.md").read_text()
    program = tmp_path / "program"
    for name, text in re.findall(
        r"^```(?:xml|java)\n(?:<!-- |// )(pom\.xml|\S+/FirstTimer\.java)(?: -->)?\n(.*?)^```$", page, re.M | re.S
    ):
        (program / name).parent.mkdir(parents=True, exist_ok=True)
        (program / name).write_text(text)
    typed("mvn -q compile", program, **env)
    assert (program / "target/classes/FirstTimer.class").exists()
