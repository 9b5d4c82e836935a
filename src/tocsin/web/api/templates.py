"""Lookup of paths with parameters, part by part; exact paths need only one dictionary lookup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.web.api.operation import Operation

T = TypeVar("T")

#: Maximum number of query parameters.
QUERY_FIELDS_MAX = 200


class Found(NamedTuple, Generic[T]):
    """The routes of a path by method, and the values of the path's parameters."""

    by_method: dict[str, T]
    parameters: dict[str, str]

    @property
    def allowed(self) -> str:
        """The methods, as the Allow header lists them."""
        return ", ".join(self.by_method)


class Templates(Generic[T]):
    """Paths such as `/a/{b}/c`. A literal part takes precedence over a parameter; a parameter is never empty."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()

    def add(self, method: str, path: str, what: T) -> None:
        """Adds `what` as the route of a method and path."""
        node = self._root
        names = []
        for part in path.encode().split(b"/"):
            if part.startswith(b"{"):
                names.append(part[1:-1].decode())
                if node.parameter is None:
                    node.parameter = _Node()
                node = node.parameter
            else:
                node = node.literals.setdefault(part, _Node())
        node.names = tuple(names)
        node.by_method[method] = what

    def find(self, raw_path: bytes) -> Found[T] | None:
        """The routes of the path, percent-encoded as it was sent; None if there are none. Raises InvalidInput for a
        parameter that is not UTF-8."""
        node, values = self._root, []
        for part in raw_path.split(b"/"):
            if b"%" in part:
                # Decoded part by part: an encoded slash belongs to its part.
                part = unquote_to_bytes(part)
            below = node.literals.get(part)
            if below is None:
                below = node.parameter
                if below is None or not part:
                    return None
                values.append(part)
            node = below
        if not node.by_method:
            return None
        return Found(node.by_method, {name: _text(name, value) for name, value in zip(node.names, values, strict=True)})


class _Node(Generic[T]):
    __slots__ = ("by_method", "literals", "names", "parameter")

    def __init__(self) -> None:
        self.literals: dict[bytes, _Node[T]] = {}
        self.parameter: _Node[T] | None = None
        self.names: tuple[str, ...] = ()
        self.by_method: dict[str, T] = {}


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidInput(FieldError(name, "is not percent-encoded UTF-8")) from None


def read_query(query: bytes, operation: Operation) -> Mapping[str, list[str]]:
    """The parameters of a query by name, in their order. Raises InvalidInput with the unknown parameters and those that must
    not be repeated, and for text that isn't UTF-8."""
    if not query:
        return {}
    known = {parameter.name: parameter for parameter in operation.parameters if parameter.place == "query"}
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS_MAX)
    except UnicodeDecodeError:
        raise InvalidInput(FieldError("", "the query is not percent-encoded UTF-8")) from None
    except ValueError:
        raise InvalidInput(
            FieldError("", f"the query has more than {QUERY_FIELDS_MAX} parameters; send fewer")
        ) from None
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        given.setdefault(name, []).append(value)
    none = "there are none" if operation.request is None else "there are none: send the fields in the body"
    errors = []
    for name, values in given.items():
        if name not in known:
            there = f"parameters are: {', '.join(known)}" if known else none
            errors.append(FieldError(name, f"is not a query parameter here; {there}"))
        elif len(values) > 1 and not known[name].repeated:
            errors.append(FieldError(name, f"is given {len(values)} times; give it once"))
    if errors:
        raise InvalidInput(*errors)
    return given
