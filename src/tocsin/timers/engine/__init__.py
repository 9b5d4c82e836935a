"""The timer engine: the pure window, and what moves timers between store, window and callbacks."""
