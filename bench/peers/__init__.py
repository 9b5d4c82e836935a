"""`python -m bench peers`: Tocsin beside other tools for delayed work, on the same work and in the same run."""
