"""What a mutation does at a place of a function, found in its syntax tree.

These are the classical operators of mutation testing: deletion of statements (Agrawal et al., "Design of Mutant Operators for
the C Programming Language", 1989), of operands and arguments (Delamaro, Offutt and Ammann, "Designing Deletion Mutation
Operators", 2014), replacement of variables, constants, relations and calls (King and Offutt's Mothra, 1991), and conditions
that always or never hold (PIT's "remove conditionals"); also insertion and rewriting, for rules that none of these drops.

A place is the smallest statement, condition or part that mentions all the given names, and the only one. A mention is an
identifier, or an expression or statement in which `...` stands for anything: `"deadline_us"`, `"self._load"`,
`"self._order = ..."`, `"op.condition.keys_after(...)"`. Line breaks, comments and moved lines make no difference.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Misfit(Exception):
    """There is no such place, or more than one."""


class Edit(NamedTuple):
    """One change in a function, or in an assignment of a module: "package.module:Class.function". `code` is what it adds."""

    function: str
    change: Callable[[ast.AST], None]
    code: str = ""


class NodePlace(NamedTuple):
    """A node of a syntax tree, and where it hangs."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None

    def put(self, *nodes: ast.AST) -> None:
        """Puts these in place of the node; none of them deletes it."""
        if self.index is None:
            (node,) = nodes
            setattr(self.parent, self.field, node)
            return
        siblings = getattr(self.parent, self.field)
        siblings[self.index : self.index + 1] = nodes
        if not siblings and self.field == "body":
            siblings.append(ast.Pass())


# ---------------------------------------------------------------------- operators


def drop(function: str, *mentions: str) -> Edit:
    """Deletes the statement."""
    return Edit(function, lambda root: _smallest(root, _statement, mentions).put())


def always(function: str, *mentions: str) -> Edit:
    """The condition holds."""
    return Edit(function, lambda root: _smallest(root, _condition, mentions).put(ast.Constant(True)))


def never(function: str, *mentions: str) -> Edit:
    """The condition does not hold."""
    return Edit(function, lambda root: _smallest(root, _condition, mentions).put(ast.Constant(False)))


def narrow(function: str, *mentions: str, and_: str) -> Edit:
    """The condition holds only if this does, too."""
    return _combined(function, mentions, ast.And(), and_)


def widen(function: str, *mentions: str, or_: str) -> Edit:
    """The condition also holds if this does."""
    return _combined(function, mentions, ast.Or(), or_)


def leave_out(function: str, *mentions: str, in_: str = "") -> Edit:
    """Deletes an operand of `and` or `or`, an argument, or an element; `in_` is mentioned in its statement."""

    def change(root: ast.AST) -> None:
        root = _smallest(root, _statement, (in_, *mentions)).node if in_ else root
        part = _smallest(root, _part, mentions)
        part.put()
        if isinstance(part.parent, ast.BoolOp) and len(part.parent.values) == 1:
            (whole,) = [place for place in _places(root) if place.node is part.parent]
            whole.put(part.parent.values[0])

    return Edit(function, change)


def replace(function: str, old: str, *, by: str, in_: str = "") -> Edit:
    """Another expression for this one, which occurs once; `in_` is mentioned in its statement."""

    def change(root: ast.AST) -> None:
        root = _smallest(root, _statement, (in_, old)).node if in_ else root
        pattern = _pattern(old)
        _only(
            [place for place in _places(root) if _loads(place.node) and _equals(pattern, place.node)],
            f"expression {old!r}",
        ).put(_expression(by))

    return Edit(function, change, by)


def rewrite(function: str, *mentions: str, to: str) -> Edit:
    """Other code for the statement; without mentions, for the function's body."""

    def change(root: ast.AST) -> None:
        if mentions:
            _smallest(root, _statement, mentions).put(*_statements(to))
        else:
            root.body = _statements(to)  # type: ignore[attr-defined]

    return Edit(function, change, to)


def only_if(function: str, *mentions: str, condition: str) -> Edit:
    """The statement runs only if this holds."""

    def change(root: ast.AST) -> None:
        place = _smallest(root, _statement, mentions)
        place.put(ast.If(_expression(condition), [place.node], []))  # type: ignore[list-item]

    return Edit(function, change, condition)


def insert(function: str, code: str, *, before: str = "", after: str = "") -> Edit:
    """Code before or after the statement that mentions this; without either, where the function begins."""

    def change(root: ast.AST) -> None:
        added = _statements(code)
        if before:
            place = _smallest(root, _statement, (before,))
            place.put(*added, place.node)
        elif after:
            place = _smallest(root, _statement, (after,))
            place.put(place.node, *added)
        else:
            root.body[:0] = added  # type: ignore[attr-defined]

    return Edit(function, change, code)


def _combined(function: str, mentions: tuple[str, ...], operator: ast.boolop, other: str) -> Edit:
    def change(root: ast.AST) -> None:
        place = _smallest(root, _condition, mentions)
        place.put(ast.BoolOp(operator, [place.node, _expression(other)]))  # type: ignore[list-item]

    return Edit(function, change, other)


# ---------------------------------------------------------------------- places


def _statement(place: NodePlace) -> bool:
    return isinstance(place.node, ast.stmt)


def _condition(place: NodePlace) -> bool:
    return (
        place.field in ("test", "ifs")
        or isinstance(place.node, ast.Compare | ast.BoolOp)
        or (isinstance(place.parent, ast.BoolOp) and place.field == "values")
        or (isinstance(place.parent, ast.UnaryOp) and isinstance(place.parent.op, ast.Not))
    )


def _part(place: NodePlace) -> bool:
    return place.index is not None and isinstance(place.parent, ast.BoolOp | ast.Call | ast.Tuple | ast.List | ast.Set)


def _places(root: ast.AST) -> Iterator[NodePlace]:
    for field, value in ast.iter_fields(root):
        for index, node in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(node, ast.AST):
                yield NodePlace(node, root, field, index)
                yield from _places(node)


def _smallest(root: ast.AST, kind: Callable[[NodePlace], bool], mentions: tuple[str, ...]) -> NodePlace:
    patterns = [_pattern(mention) for mention in mentions]
    found = [
        place
        for place in _places(root)
        if kind(place) and all(any(_mentions(pattern, node) for node in ast.walk(place.node)) for pattern in patterns)
    ]
    smallest = [
        place
        for place in found
        if not any(node is other.node for other in found if other is not place for node in ast.walk(place.node))
    ]
    return _only(smallest, f"{kind.__name__[1:]} that mentions {' and '.join(map(repr, mentions))}")


def _only(places: list[NodePlace], what: str) -> NodePlace:
    if not places:
        raise Misfit(f"no {what}")
    if len(places) > 1:
        lines = ", ".join(str(getattr(place.node, "lineno", "?")) for place in places)
        raise Misfit(f"more than one {what} (lines {lines}); mention more of it")
    return places[0]


# ---------------------------------------------------------------------- patterns


def _pattern(text: str) -> ast.AST:
    (statement,) = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _statements(text: str) -> list[ast.stmt]:
    return ast.parse(textwrap.dedent(text)).body


def _loads(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load | None)


def _mentions(pattern: ast.AST, node: ast.AST) -> bool:
    """An identifier alone is mentioned by a name, an attribute and a keyword argument; any other pattern by its equal."""
    if isinstance(pattern, ast.Name):
        return pattern.id in (getattr(node, name, None) for name in ("id", "attr", "arg"))
    return _equals(pattern, node)


def _equals(pattern: object, node: object) -> bool:
    if isinstance(pattern, ast.Expr):
        pattern = pattern.value
    if isinstance(pattern, ast.Constant) and pattern.value is ...:
        return True
    if isinstance(pattern, list):
        if len(pattern) == 1 and _equals(pattern[0], None):
            return True
        return isinstance(node, list) and len(pattern) == len(node) and all(map(_equals, pattern, node))
    if not isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and pattern == node
    return type(pattern) is type(node) and all(
        _equals(value, getattr(node, field))
        for field, value in ast.iter_fields(pattern)
        if field not in ("ctx", "kind", "type_comment")
    )
