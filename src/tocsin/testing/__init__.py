"""Helpers for testing Tocsin or your own adapters: conformance suites, faults, clocks, virtual time."""
