"""Tells when a due time is reached."""
