"""Helpers for whoever tests Tocsin or an adapter of their own: conformance suites, faults, clocks, virtual time."""
