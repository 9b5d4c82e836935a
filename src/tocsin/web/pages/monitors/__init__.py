"""Monitors: the list, a page for each, and the form."""
