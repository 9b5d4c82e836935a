"""Logs and metrics: observers of typed events."""
