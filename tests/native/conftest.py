"""The compiled codec and the rules under which it reads. Without the package, its tests are skipped."""

from __future__ import annotations

import pytest

from tests.support.needs import lacking
from tocsin.model.validation import InputLimits, InputRules
from tocsin.native import native
from tocsin.web.http.codec import Codec, native_codec


def _refusal(url: str) -> str | None:
    """Stands for the egress policy: some URLs are refused."""
    return "may not be called" if "refused" in url or not url.startswith("http") else None


@pytest.fixture(scope="session")
def rules() -> InputRules:
    # Less than usual, so that tests reach them.
    return InputRules(InputLimits(payload_bytes_max=200, payload_depth_max=4), _refusal)


@pytest.fixture(scope="session")
def codec(rules: InputRules) -> Codec:
    found = native_codec(rules)
    if found is None:
        lacking("native", f"tocsin-native is {native().description}; `make native` builds it")
    return found
