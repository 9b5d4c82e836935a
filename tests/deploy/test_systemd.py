"""The systemd unit: systemd accepts it, and finds it well confined."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY, unknown_settings
from tests.docs.blocks import blocks_of
from tests.support.cases import each
from tests.support.needs import lacking

PAGE = "docs/how-to/deploy.md"
UNIT = DEPLOY / "systemd" / "tocsin.service"
#: Tenths of systemd's points, of which 100 is no confinement at all.
EXPOSURE_MAX = 20


@pytest.fixture
def analyze() -> str:
    """systemd's own check of units."""
    found = shutil.which("systemd-analyze")
    if found is None:
        lacking("systemd-analyze", "Debian's package systemd has it")
    return found


def test_systemd_accepts_the_unit(analyze: str, tmp_path: Path):
    # It requires that the program exists.
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/tocsin/bin/tocsin", "/bin/true"))
    checked = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


#: What the page adds to the unit: for any file, and for one of several nodes.
DROP_INS = [block.text for block in blocks_of(PAGE) if block.language == "ini"]


@each("lines", DROP_INS)
def test_systemd_accepts_the_lines_that_the_page_adds(lines: str, analyze: str, tmp_path: Path):
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/tocsin/bin/tocsin", "/bin/true"))
    (tmp_path / f"{UNIT.name}.d").mkdir(exist_ok=True)
    (tmp_path / f"{UNIT.name}.d/override.conf").write_text(lines)
    checked = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    variables = re.findall(r"^Environment=(\w+)=%d/(.+)$", lines, re.MULTILINE)
    assert unknown_settings({name for name, _ in variables}) == set()
    assert [file for _, file in variables] == re.findall(r"^LoadCredential=([\w-]+):", lines, re.MULTILINE)


def test_the_page_gives_commands_the_units_environment():
    """The state's folder is that to which systemd links it for a dynamic user; root finds the same files there."""
    text = UNIT.read_text()
    folder = re.findall(r"^StateDirectory=(\w+)$", text, re.MULTILINE)[0]
    program = re.findall(r"^ExecStart=(\S+)/tocsin ", text, re.MULTILINE)[0]
    config = re.findall(r"^Environment=(TOCSIN_CONFIG=\S+)$", text, re.MULTILINE)[0]
    assert "Environment=TOCSIN_DATA_DIR=%S/" + folder in text and "DynamicUser=yes" in text
    line = f"export PATH=$PATH:{program} {config} TOCSIN_DATA_DIR=/var/lib/private/{folder}\n"
    assert [block.text for block in blocks_of(PAGE) if "export PATH" in block.text] == [line]


def test_systemd_never_gives_the_unit_up():
    lines = UNIT.read_text().split("[Service]")
    assert "\nStartLimitIntervalSec=0\n" in lines[0] and "\nRestart=always\n" in lines[1]


def test_the_unit_is_confined(analyze: str):
    command = [analyze, "security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", "--no-pager", str(UNIT)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout[-2000:] + checked.stderr


def test_the_units_variables_are_settings():
    variables = set(re.findall(r"^Environment=(\w+)=", UNIT.read_text(), re.MULTILINE))
    assert len(variables) > 2
    assert unknown_settings(variables - {"TOCSIN_CONFIG"}) == set()
