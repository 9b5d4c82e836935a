"""Fails unless the commit of a release is on `main`, and CI has passed there: the workflows of releases run it on their tag.

    python scripts/release_commit.py OWNER/REPOSITORY COMMIT

It needs a clone with the history of `origin/main`, and the program `gh` with a token that reads the runs of workflows.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def problem(repository: str, commit: str, folder: Path) -> str | None:
    """Why the commit must not be released; None if it may."""
    on_main = ["git", "merge-base", "--is-ancestor", commit, "origin/main"]
    if subprocess.run(on_main, cwd=folder, check=False).returncode:
        return f"commit {commit} is not on main: merge it, and tag it there"
    runs = f"repos/{repository}/actions/workflows/ci.yml/runs?branch=main&event=push&status=success&head_sha={commit}"
    asked = ["gh", "api", runs, "--jq", ".total_count"]
    passed = subprocess.run(asked, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout
    if int(passed) == 0:
        return f"CI has not passed on main for commit {commit}: wait for it, then run this workflow again"
    return None


def main() -> None:
    repository, commit = sys.argv[1:]
    sys.exit(problem(repository, commit, ROOT))


if __name__ == "__main__":
    main()
