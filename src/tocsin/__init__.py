"""Tocsin: a durable timer service. Tell it when; it fires, on time, at least once, even across crashes."""

__version__ = "0.1.0"
