"""Skips that name what the machine lacks, and that `TOCSIN_TEST_REQUIRE=name,name` turns into failures."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def lacking(name: str, reason: str) -> NoReturn:
    """Skips the test because the machine has no `name`; fails it if `name` is required."""
    required = {word.strip() for word in os.environ.get("TOCSIN_TEST_REQUIRE", "").split(",")}
    if name in required:
        pytest.fail(f"TOCSIN_TEST_REQUIRE names {name}, which isn't to be had: {reason}")
    pytest.skip(f"{name} is not to be had: {reason}")
