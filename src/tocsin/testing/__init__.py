"""Helpers for whoever tests Tocsin or an adapter of their own: a conformance suite for stores, a store that fails."""
