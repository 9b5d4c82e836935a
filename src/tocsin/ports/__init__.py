"""What the engine asks of the world, as protocols whose docstrings state the semantics."""
