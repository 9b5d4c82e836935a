"""Publishes DueTimeReached when a scheduled instant is reached."""
