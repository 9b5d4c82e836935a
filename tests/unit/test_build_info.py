"""The commit of a checkout, read from Git's files."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tocsin.build_info import UNKNOWN, commit_of_checkout


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_the_commit_of_a_checkout_and_of_a_worktree(tmp_path: Path) -> None:
    root, tree = tmp_path / "root", tmp_path / "tree"
    root.mkdir()
    assert commit_of_checkout(root) == UNKNOWN
    git(root, "init", "--quiet")
    assert commit_of_checkout(root) == UNKNOWN
    git(root, "commit", "--quiet", "--allow-empty", "--message", "first")
    commit = git(root, "rev-parse", "HEAD")
    git(root, "worktree", "add", "--quiet", str(tree), "-b", "other")
    assert commit_of_checkout(root) == commit_of_checkout(tree) == f"{commit}-checkout"
    git(root, "pack-refs", "--all")
    assert commit_of_checkout(root) == commit_of_checkout(tree) == f"{commit}-checkout"
    git(root, "checkout", "--quiet", "--detach")
    assert commit_of_checkout(root) == f"{commit}-checkout"
