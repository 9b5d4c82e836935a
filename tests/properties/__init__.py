"""The pure window under random interleavings of everything that can happen to it."""
