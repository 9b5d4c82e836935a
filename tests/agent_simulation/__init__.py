"""The service agent's real modules in virtual time, with everything around them failing: replayed by a seed."""
