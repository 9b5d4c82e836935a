"""Data of an earlier release opens with this one without loss."""
