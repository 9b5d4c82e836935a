"""The life of a service call: the only writer of domain state."""
