"""Where a server listens."""

from __future__ import annotations

import pytest

from tocsin.model.errors import ConfigError
from tocsin.server.sockets import bind


def test_a_host_that_has_no_address_is_refused_with_what_to_give() -> None:
    # Too long for a name, so that nobody is asked for it.
    with pytest.raises(ConfigError, match=r"^host: 'x{64}' can't be resolved .*; give an address of this machine"):
        bind("x" * 64, 0)
