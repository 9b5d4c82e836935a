"""Observers of typed events: logs and metrics."""
