"""The table of error codes is complete, with the right statuses."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

from scripts.openapi.codes import CODES, FAILURES, error_classes_by_code

import tocsin
from tocsin.web.http.errors import problem_kind_of_class

SOURCES = Path(tocsin.__file__).parent
#: What timers of the service agent meet within the server, where no client sees it.
_INTERNAL = {"service_calls/engine_timers.py", "server/relay.py"}


def test_every_error_code_is_in_the_table() -> None:
    for module in pkgutil.walk_packages(tocsin.__path__, "tocsin."):
        if not module.name.endswith(("__main__", "migrations.env")):
            importlib.import_module(module.name)
    answered = error_classes_by_code()
    assert answered.keys() == CODES.keys()
    for code, classes in answered.items():
        assert len({problem_kind_of_class(kind).status for kind in classes}) == 1, code


def test_every_failure_of_an_attempt_is_in_the_table() -> None:
    found = {"HTTP_<status>"}
    for path in SOURCES.rglob("*.py"):
        if not any(str(path).endswith(name) for name in _INTERNAL):
            text = path.read_text(encoding="utf-8")
            found |= set(re.findall(r'(?:NoResponse|Failed|ErrorMeta)\(\s*f?"([A-Z_]{4,})\b', text))
            found |= set(re.findall(r'InvalidRequest\(.*"([A-Z_]+)"', text))
    assert found >= {"TIMEOUT", "CALLBACK_NOT_OK", "INTERRUPTED"}
    assert found | {"HTTP_STATUS", "EXPIRED"} == FAILURES.keys()
