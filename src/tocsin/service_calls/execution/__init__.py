"""Sends the HTTP request of a service call and logs its execution."""
