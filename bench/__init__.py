"""Benchmarks: `make bench` measures the real server from outside, beside the machine's own limits in the same run."""
