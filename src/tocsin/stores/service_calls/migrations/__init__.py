"""Alembic's environment and the versions of the agent's schema."""
