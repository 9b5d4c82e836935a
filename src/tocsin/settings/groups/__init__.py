"""The settings, grouped by the question that an operator has."""
