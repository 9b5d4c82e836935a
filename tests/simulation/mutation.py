"""A mutation of the source: which functions it changes, how, and what notices it."""

from __future__ import annotations

import ast
import builtins
import dis
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from .mutation_operators import Edit, Misfit

SOURCE = Path(__file__).parents[2] / "src" / "tocsin"

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: What any object of Python's own has.
_COMMON = {name for kind in (object, int, str, bytes, tuple, list, dict, set) for name in dir(kind)}


class Mutation(NamedTuple):
    """`rule` is the engine's rule by number; 0: of the store, or of how timers end. `tests` are pytest nodes that notice it,
    for what seeds find late or never; they come first. `proofs` are the programs that may notice it, each with the number of
    its seeds where that isn't the hunt's."""

    name: str
    rule: int
    edits: tuple[Edit, ...]
    proofs: tuple[tuple[str, int], ...] = (("tests.properties", 4_000), ("tests.simulation", 0))
    tests: tuple[str, ...] = ()


def mutation(name: str, rule: int, *edits: Edit, caught_by: str = "") -> Mutation:
    """A mutation that the properties and the simulation may notice, or that one test does."""
    return Mutation(name, rule, edits, tests=(caught_by,) if caught_by else ())


def misfits(mutation: Mutation) -> list[str]:
    """Places that are not found exactly once in today's source, unknown names in the mutation's code, and missing tests."""
    return [f"{mutation.name}: {fault}" for fault in (*_misplaced(mutation), *_missing_tests(mutation))]


def apply(mutation: Mutation, source: Path) -> None:
    """Edits a copy of the package. Raises Misfit."""
    for file, tree in _mutated(mutation, source).items():
        file.write_text(ast.unparse(tree) + "\n")


def _mutated(mutation: Mutation, source: Path) -> dict[Path, ast.Module]:
    trees: dict[Path, ast.Module] = {}
    for function, change, _ in mutation.edits:
        try:
            file = _file(function, source)
            if file not in trees:
                trees[file] = ast.parse(file.read_text())
            change(_definitions(function, trees[file])[-1])
        except (Misfit, SyntaxError) as error:
            raise Misfit(f"{function}: {error}") from None
    return trees


def _file(function: str, source: Path) -> Path:
    module = function.partition(":")[0].split(".")
    file = source.joinpath(*module[1:]).with_suffix(".py")
    if module[0] != source.name or not file.is_file():
        raise Misfit("no such module")
    return file


def _definitions(function: str, tree: ast.Module) -> list[ast.stmt]:
    """The classes and functions, from the outermost inwards, or the assignment, that the qualified name goes through."""
    found: list[ast.stmt] = []
    for name in function.partition(":")[2].split("."):
        body = getattr(found[-1] if found else tree, "body", ())
        named = [each for each in body if name in _names(each)]
        if len(named) != 1:
            raise Misfit(f"{'more than one' if named else 'no'} {name!r}")
        found += named
    return found


def _names(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module or a class binds."""
    if isinstance(statement, _Function | ast.ClassDef):
        return {statement.name}
    return {
        node.id if isinstance(node, ast.Name) else (node.asname or node.name).partition(".")[0]
        for node in ast.walk(statement)
        if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)) or isinstance(node, ast.alias)
    }


# ---------------------------------------------------------------------- checks


def _misplaced(mutation: Mutation) -> Iterator[str]:
    try:
        trees = _mutated(mutation, SOURCE)
    except Misfit as misfit:
        yield str(misfit)
        return
    for function in dict.fromkeys(edit.function for edit in mutation.edits):
        tree = trees[_file(function, SOURCE)]
        changed = next(each for each in _definitions(function, tree) if not isinstance(each, ast.ClassDef))
        try:
            code = compile(ast.unparse(changed), function, "exec")
        except SyntaxError as error:
            yield f"{function}: {error}"
            continue
        known = {name for statement in tree.body for name in _names(statement)}
        yield from (f"{function}: no {name!r}" for name in sorted(_unknown(code, known)))


def _unknown(code: CodeType, known: set[str]) -> set[str]:
    """Globals that the module does not have, and attributes that nothing in the package has."""
    codes = [code]
    for each in codes:
        codes += (constant for constant in each.co_consts if isinstance(constant, CodeType))
    named = {(step.opname.partition("_"), step.argval) for each in codes for step in dis.get_instructions(each)}
    stored = {name for (verb, _, _), name in named if verb == "STORE"}
    loaded = {(kind, name) for (verb, _, kind), name in named if verb == "LOAD"}
    unknown = {name for kind, name in loaded if kind in ("GLOBAL", "NAME")} - known - set(dir(builtins))
    unknown |= {name for kind, name in loaded if kind in ("ATTR", "METHOD")} - _words() - _COMMON
    return unknown - stored


@lru_cache(maxsize=1)
def _words() -> set[str]:
    return {word for file in SOURCE.rglob("*.py") for word in re.findall(r"\w+", file.read_text())}


def _missing_tests(mutation: Mutation) -> Iterator[str]:
    for node in mutation.tests:
        file, _, test = node.partition("::")
        path = SOURCE.parents[1] / file
        texts = [path, *(SOURCE / "testing").glob("store_conformance*.py")] if path.is_file() else []
        if not any(f"def {test.rpartition('::')[2]}(" in text.read_text() for text in texts):
            yield f"no test {node}"
