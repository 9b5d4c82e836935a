"""The optional package `tocsin-native`: work of the hot path in compiled code, byte for byte as Python does it.

It is used if it is installed in the version of this package, unless TOCSIN_NATIVE is `off`."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import tocsin

#: `off` leaves the package unused, for comparison, or if it were at fault.
VARIABLE = "TOCSIN_NATIVE"
_MODULE = "tocsin_native"


@cache
def module() -> ModuleType | None:
    """The package's module; None where Python does the work."""
    if os.environ.get(VARIABLE) == "off" or find_spec(_MODULE) is None:
        return None
    found = import_module(_MODULE)
    return found if found.__version__ == tocsin.__version__ else None


def description() -> str:
    """Which of the two does the work, and why, in a few words."""
    if module() is not None:
        return f"tocsin-native {tocsin.__version__}"
    if os.environ.get(VARIABLE) == "off":
        return f"off ({VARIABLE})"
    if find_spec(_MODULE) is None:
        return "not installed"
    return f"unused: tocsin-native {import_module(_MODULE).__version__} is installed, and this is {tocsin.__version__}"
