"""Alembic's environment and the versions of the agent's schema, which go forward only: to go back, restore a backup.

The versions share column types and constraints with the code. Their form in a database never changes: a column that needs
another one gets a new type in a new version.
"""
