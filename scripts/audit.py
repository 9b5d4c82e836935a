"""Checks the locked dependencies for known vulnerabilities, with PyPI's and npm's services.

Exits with 0 if all dependencies were checked and none has a known vulnerability, with 1 if one has, and with 2 if some could
not be checked. `--tolerate-unreachable` turns that last case into 0 and prints the same warnings. pip-audit is installed into
its own folder.
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


def python_vulnerabilities() -> tuple[list[str], list[str]]:
    """Vulnerabilities in the Python dependencies, and the dependencies that could not be checked."""
    pip_audit = TOOL / "bin" / "pip-audit"
    if not pip_audit.exists():
        venv.create(TOOL, with_pip=True, clear=True)
        made = run(str(TOOL / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "pip-audit")
        if made.returncode:
            return [], [f"pip-audit could not be installed: {last_line(made.stderr)}"]
    vulnerabilities, missing = [], []
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
        vulnerabilities += [
            f"{package['name']} {package['version']}: {vuln['id']}, fixed in {', '.join(vuln['fix_versions']) or 'none'}"
            for package in packages
            for vuln in package.get("vulns", [])
        ]
    return vulnerabilities, missing


def web_vulnerabilities() -> tuple[list[str], list[str]]:
    """Vulnerabilities in the packages that build the web pages, and the lock file if it could not be checked."""
    try:
        ran = run("npm", "audit", "--package-lock-only", "--json", "--prefix", str(ROOT / "web"))
        found = json.loads(ran.stdout)["vulnerabilities"]
    except FileNotFoundError:
        return [], ["web/package-lock.json: npm is not installed"]
    except (ValueError, KeyError):
        return [], [f"web/package-lock.json: {last_line(ran.stderr)}"]
    return [f"npm {name}: {vuln['severity']}" for name, vuln in found.items()], []


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a tool and returns its output."""
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)


def last_line(text: str) -> str:
    """The last line of a tool's output, without npm's reference to its log file."""
    lines = [line for line in text.splitlines() if line.strip() and "complete log" not in line]
    return (lines or ["no output"])[-1]


def main() -> int:
    """Runs both audits and returns the exit status."""
    vulnerabilities: list[str] = []
    missing: list[str] = []
    for audit in (python_vulnerabilities, web_vulnerabilities):
        try:
            found, unknown = audit()
        except subprocess.TimeoutExpired:
            found, unknown = [], [f"{audit.__name__}: timed out after {TIMEOUT_S} s"]
        vulnerabilities += found
        missing += unknown
    for line in vulnerabilities:
        print(f"VULNERABLE {line}")
    for line in missing:
        print(f"NOT AUDITED {line}", file=sys.stderr)
    if missing:
        print(
            "NOT AUDITED: the dependencies above were not checked; their vulnerabilities are unknown.", file=sys.stderr
        )
    if vulnerabilities:
        return 1
    if missing:
        return 0 if "--tolerate-unreachable" in sys.argv[1:] else 2
    print("No known vulnerability in any locked dependency.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
