"""The inbox: timers that programs write as rows of their own database, created from there (ADR 107)."""
