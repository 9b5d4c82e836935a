"""What failed, grouped by cause."""
