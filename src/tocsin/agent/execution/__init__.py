"""Makes the HTTP request of a service call, once, and logs it."""
