"""From the outbox table to the bus."""
