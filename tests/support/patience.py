"""How long tests wait for an event."""

from __future__ import annotations

#: How long a test waits at most: long enough for a busy machine that halts for seconds now and then. It does not delay a
#: test that passes, only the report of one that fails.
PATIENCE_S = 60.0
