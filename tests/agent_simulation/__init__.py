"""The real modules of the service agent in virtual time, with failures all around them; a seed replays a run."""
