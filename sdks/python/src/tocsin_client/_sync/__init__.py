"""The blocking client, made from `_async` by unasync.py."""
