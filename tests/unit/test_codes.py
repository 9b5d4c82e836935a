"""The table of error codes is complete, with the right statuses."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

from scripts.openapi.codes import CODES, EXIT_CODES, FAILURES, SUSPENSIONS, error_classes_by_code

import tocsin
from tocsin.web.http.errors import DOCS_URL, problem_kind_of_class, problem_type

SOURCES = Path(tocsin.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"
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
            found |= set(re.findall(r'(?:NoResponse|Failed|ErrorMeta)\(\s*f?"([A-Z_]{3,}[A-Z])\b', text))
            found |= set(re.findall(r'InvalidRequest\(.*"([A-Z_]+)"', text))
    assert found >= {"TIMEOUT", "CALLBACK_NOT_OK", "NO_RESULT", "INTERRUPTED"}
    assert found | {"HTTP_STATUS", "EXPIRED"} == FAILURES.keys()


def test_the_type_of_every_problem_is_the_address_of_its_row() -> None:
    for code in CODES:
        page, _, anchor = problem_type(code).removeprefix(DOCS_URL).partition("/#")
        assert f'<a id="{anchor}"></a>`{code}`' in (DOCS / f"{page}.md").read_text(encoding="utf-8")


def test_every_reason_of_a_suspension_is_in_the_table() -> None:
    document = (SOURCES / "web/api/openapi.json").read_text(encoding="utf-8")
    (described,) = set(re.findall(r"Why the pending timer is suspended: [^\"]*", document))
    assert set(re.findall(r"`([a-z_]+:?)", described)) == SUSPENSIONS.keys()


def test_every_exit_code_is_in_the_table() -> None:
    found = {0}
    for folder in ("cli", "server"):
        for path in (SOURCES / folder).rglob("*.py"):
            named = re.findall(r"^(?:EXIT_(?!FORCED)[A-Z]+) = (\d+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            found |= {int(number) for number in named}
    assert found >= {1, 2, 75, 130}
    assert found | {143} == {number for number, _, _ in EXIT_CODES}
