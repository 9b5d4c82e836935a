"""Where timers are sent besides receivers of HTTP, and who sends what."""
