"""The timer service: its use cases, on top of the engine."""
