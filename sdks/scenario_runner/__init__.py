"""Runs the scenarios and vectors of `sdks/` with the driver of a language: `sdks/harness.py` starts it."""
