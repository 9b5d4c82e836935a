"""Runs the commands of a page: `python -m tests.docs docs/tutorial/first-timer.md`."""

from __future__ import annotations

import sys

from tests.docs.reading import in_namespaces

if __name__ == "__main__":
    code, transcript = in_namespaces(sys.argv[1])
    print(transcript)
    sys.exit(code)
