"""The overview: the health of the service, and the statistics of the last hour."""
