"""How long tests wait for what has to come."""

from __future__ import annotations

#: Before a test gives up, on a machine that has much else to do and stands still for seconds now and then. It passes no
#: sooner for it; where it fails it says so later.
PATIENCE_S = 60.0
