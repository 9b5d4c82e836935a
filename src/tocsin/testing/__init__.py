"""For tests of Tocsin and of third-party adapters: clocks, faults, conformance suites, a loop in virtual time."""
