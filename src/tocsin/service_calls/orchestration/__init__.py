"""The lifecycle of a service call. Only this module writes the state of calls."""
