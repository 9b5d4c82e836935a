"""A mutation of the engine's source, and how it is made."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "tocsin"


class Mutation(NamedTuple):
    """`rule` is the engine's rule by number; 0: of the store, or of how timers end. `tests` are pytest nodes that notice it,
    for what seeds find late or never; they come first. `proofs` are the programs that may notice it, each with the number of
    its seeds where that isn't the hunt's."""

    name: str
    rule: int
    edits: list[tuple[str, str, str]]
    proofs: tuple[tuple[str, int], ...] = (("tests.properties", 4_000), ("tests.simulation", 0))
    tests: tuple[str, ...] = ()


def one(name: str, rule: int, file: str, old: str, new: str, *tests: str) -> Mutation:
    """A mutation of one place."""
    return Mutation(name, rule, [(file, old, new)], tests=tests)


def misfits(mutation: Mutation) -> list[str]:
    """Edits whose text does not occur exactly once in today's source, and tests that there are not."""
    found = [
        f"{mutation.name}: {(SOURCE / file).read_text().count(old)} times in {file}: {old!r}"
        for file, old, _ in mutation.edits
        if (SOURCE / file).read_text().count(old) != 1
    ]
    for node in mutation.tests:
        file, _, test = node.partition("::")
        path = SOURCE.parents[1] / file
        texts = [path, *(SOURCE / "testing").glob("store_conformance*.py")] if path.is_file() else []
        if not any(f"def {test.rpartition('::')[2]}(" in text.read_text() for text in texts):
            found.append(f"{mutation.name}: no test {node}")
    return found


def apply(mutation: Mutation, source: Path) -> None:
    """Edits a copy of the package."""
    for file, old, new in mutation.edits:
        path = source / file
        path.write_text(path.read_text().replace(old, new, 1))
