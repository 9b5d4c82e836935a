"""The pure window under random interleavings of all its events."""
