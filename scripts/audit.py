"""Asks PyPI's and npm's services for known faults of the locked dependencies.

Ends with 0 when all were looked up and none is known, with 1 when one is, with 2 when some could not be looked up;
`--tolerate-unreachable` makes that last case 0, and says it as loudly. pip-audit is installed into a folder of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "build" / "audit"
LOCKS = ("main", "build", "dev")
TIMEOUT_S = 300


def python_faults() -> tuple[list[str], list[str]]:
    """Faults, and what could not be looked up."""
    pip_audit = TOOL / "bin" / "pip-audit"
    if not pip_audit.exists():
        venv.create(TOOL, with_pip=True, clear=True)
        made = run(str(TOOL / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "pip-audit")
        if made.returncode:
            return [], [f"pip-audit could not be installed: {last_line(made.stderr)}"]
    faults, missing = [], []
    for lock in LOCKS:
        ran = run(
            str(pip_audit), "--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off",
            "--requirement", str(ROOT / "requirements" / f"{lock}.txt"),
        )  # fmt: skip
        try:
            packages = json.loads(ran.stdout)["dependencies"]
        except (ValueError, KeyError):
            missing.append(f"requirements/{lock}.txt: {last_line(ran.stderr)}")
            continue
        skipped = [package["name"] for package in packages if "skip_reason" in package]
        if skipped:
            missing.append(f"requirements/{lock}.txt: {len(skipped)} of {len(packages)} packages, {skipped[0]} first")
        faults += [
            f"{package['name']} {package['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'none'}"
            for package in packages
            for fault in package.get("vulns", [])
        ]
    return faults, missing


def web_faults() -> tuple[list[str], list[str]]:
    """The same of the packages that the web pages are built with."""
    try:
        ran = run("npm", "audit", "--package-lock-only", "--json", "--prefix", str(ROOT / "web"))
        found = json.loads(ran.stdout)["vulnerabilities"]
    except FileNotFoundError:
        return [], ["web/package-lock.json: npm is not here"]
    except (ValueError, KeyError):
        return [], [f"web/package-lock.json: {last_line(ran.stderr)}"]
    return [f"npm {name}: {fault['severity']}" for name, fault in found.items()], []


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a tool to its end."""
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)


def last_line(text: str) -> str:
    """What a tool said last."""
    lines = [line for line in text.splitlines() if line.strip() and "complete log" not in line]
    return (lines or ["no answer"])[-1]


def main() -> int:
    """Both audits."""
    faults: list[str] = []
    missing: list[str] = []
    for audit in (python_faults, web_faults):
        try:
            found, unknown = audit()
        except subprocess.TimeoutExpired:
            found, unknown = [], [f"{audit.__name__}: no answer within {TIMEOUT_S} s"]
        faults += found
        missing += unknown
    for line in faults:
        print(f"FAULT {line}")
    for line in missing:
        print(f"NOT AUDITED {line}", file=sys.stderr)
    if missing:
        print("NOT AUDITED: the dependencies above were not looked up; nothing is known of them.", file=sys.stderr)
    if faults:
        return 1
    if missing:
        return 0 if "--tolerate-unreachable" in sys.argv[1:] else 2
    print("No known fault in any locked dependency.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
