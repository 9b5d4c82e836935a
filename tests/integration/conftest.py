"""Fixtures of all integration tests."""

from __future__ import annotations

from tests.support.agent_schema import agent_schema_copied

__all__ = ["agent_schema_copied"]
