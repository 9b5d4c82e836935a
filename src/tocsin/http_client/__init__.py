"""Calling receivers over HTTP/1.1: our own client, because this is the path that every timer takes."""
