"""What runs with a peer's own Python: a client that creates, and a worker that fires. Nothing of Tocsin is imported there."""
