"""The table and the plot of the plan, for the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_pages(root: Path, kept: dict[str, dict[str, Any]]) -> None:
    """Writes both."""
