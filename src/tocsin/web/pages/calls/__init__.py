"""Pages of the service agent: submit a call, watch it, find it again."""
