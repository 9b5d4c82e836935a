"""Schemas, one folder a database, as numbered migrations that only go forward."""
