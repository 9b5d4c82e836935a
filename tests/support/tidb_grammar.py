"""TiDB's own grammar, as a program that parses statements: `make tidb-grammar` builds it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.needs import lacking
from tocsin.stores.mysql.driver import Connection, Result

PROGRAM = Path(__file__).parents[2] / "build" / "tidb-grammar" / "parse"
#: TiDB's warning of a hint that is meant for MySQL; TiDB's form of it is beside it.
_FOR_MYSQL = re.compile(r".*Optimizer hint INDEX is not supported by TiDB.*")
#: Statements that differ only in their literals have the same shape.
_LITERAL = re.compile(rb"(?:x|_binary)?'(?:[^'\\]|\\.|'')*'|-?\b\d+\b", re.DOTALL)


def require() -> None:
    """Skips the test where the program is not built."""
    if not PROGRAM.exists():
        lacking("tidb-grammar", "`make tidb-grammar` has not built it")


def complaints(statements: Iterable[bytes]) -> dict[str, str]:
    """What TiDB's grammar refuses or warns of, by statement, apart from hints for MySQL."""
    texts = [statement.decode(errors="replace") for statement in statements]
    found = subprocess.run([PROGRAM], input=json.dumps(texts).encode(), stdout=subprocess.PIPE, check=True).stdout
    lines = ((text, (each or "").splitlines()) for text, each in zip(texts, json.loads(found), strict=True))
    left = ((text, [line for line in each if not _FOR_MYSQL.fullmatch(line)]) for text, each in lines)
    return {text[:500]: "; ".join(each) for text, each in left if each}


def shape(statement: bytes) -> bytes:
    """The statement without its literals."""
    return _LITERAL.sub(b"?", statement)


#: The shapes that this process has parsed.
_parsed: set[bytes] = set()


@contextmanager
def every_statement_is_parsed(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """At the end, TiDB's grammar must accept every statement that sessions have sent meanwhile. Nothing is checked where the
    program is not built."""
    if not PROGRAM.exists():
        yield
        return
    sent: dict[bytes, bytes] = {}
    run = Connection.run

    async def recorded(self: Connection, *statements: bytes) -> list[Result]:
        for statement in statements:
            sent.setdefault(shape(statement), statement)
        return await run(self, *statements)

    patch.setattr(Connection, "run", recorded)
    yield
    new = {key: statement for key, statement in sent.items() if key not in _parsed}
    _parsed.update(new)
    assert complaints(new.values()) == {}
