"""Adapters for the modules' ports: the database and the timer engine."""
