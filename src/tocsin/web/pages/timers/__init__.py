"""The pages about timers."""
