"""The optional package `tocsin-native`: work of the hot path in compiled code, byte for byte as Python does it.

It is used if it is installed in the version of this package, unless TOCSIN_NATIVE is `off`."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import NamedTuple

import tocsin

#: `off` leaves the package unused: for comparison, and if it were at fault.
VARIABLE = "TOCSIN_NATIVE"
_MODULE = "tocsin_native"


class Native(NamedTuple):
    """The package's module, None where Python does the work; and which of the two does it and why, in a few words."""

    module: ModuleType | None
    description: str


def found() -> Native:
    """What this process uses, by its environment and by what is installed."""
    if os.environ.get(VARIABLE) == "off":
        return Native(None, f"off ({VARIABLE})")
    if find_spec(_MODULE) is None:
        return Native(None, "not installed")
    try:
        module = import_module(_MODULE)
    except ImportError as error:
        return Native(None, f"unused: tocsin-native can't be loaded ({error})")
    if module.__version__ != tocsin.__version__:
        return Native(
            None, f"unused: tocsin-native {module.__version__} is installed, and this is {tocsin.__version__}"
        )
    return Native(module, f"tocsin-native {module.__version__}")


@cache
def native() -> Native:
    """`found`, once for each process."""
    return found()
