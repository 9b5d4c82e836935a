"""Whether the compiled package is used, and how that is reported."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

import tocsin
from tocsin.native import VARIABLE, found


def _installed(monkeypatch: pytest.MonkeyPatch, version: str) -> ModuleType:
    module = ModuleType("tocsin_native")
    module.__spec__ = ModuleSpec("tocsin_native", None)
    module.__dict__["__version__"] = version
    monkeypatch.setitem(sys.modules, "tocsin_native", module)
    monkeypatch.delenv(VARIABLE, raising=False)
    return module


def test_the_package_of_this_version_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    module = _installed(monkeypatch, tocsin.__version__)
    assert found() == (module, f"tocsin-native {tocsin.__version__}")


def test_the_package_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(monkeypatch, "0.0.9")
    used = found()
    assert used.module is None
    assert used.description == f"unused: tocsin-native 0.0.9 is installed, and this is {tocsin.__version__}"


def test_a_variable_leaves_it_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(monkeypatch, tocsin.__version__)
    monkeypatch.setenv(VARIABLE, "off")
    assert found() == (None, "off (TOCSIN_NATIVE)")


def test_a_package_that_does_not_load_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("broken")
    (folder / "tocsin_native.py").write_text("raise ImportError('of another platform')")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "tocsin_native", raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert found() == (None, "unused: tocsin-native can't be loaded (of another platform)")
