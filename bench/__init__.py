"""Benchmarks: `make bench` measures the real server from outside, and the machine's own limits in the same run."""
