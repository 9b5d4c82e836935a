"""Implementations of the modules' ports: the database, the timer engine."""
