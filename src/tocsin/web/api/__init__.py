"""The HTTP API: an ASGI application over the timer service."""
