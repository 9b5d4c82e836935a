"""What an earlier release stored opens with this one, and nothing of it is lost."""
