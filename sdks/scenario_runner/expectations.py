"""Expected values: what a scenario may state about a result, and the variables in its texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_VARIABLE = re.compile(r"\$\{([^}]+)\}")


def filled(template: Any, value_of: Callable[[str], Any]) -> Any:
    """The template with its variables `${name}` replaced. A text that is only a variable becomes its value."""
    if isinstance(template, dict):
        return {key: filled(value, value_of) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, value_of) for value in template]
    if not isinstance(template, str):
        return template
    if whole := _VARIABLE.fullmatch(template):
        return value_of(whole[1])
    return _VARIABLE.sub(lambda found: str(value_of(found[1])), template)


def at_path(value: Any, path: str) -> Any:
    """The part of the value at a path such as `items.0.id`; the value itself for an empty one. Raises KeyError."""
    for name in path.split(".") if path else ():
        try:
            value = value[int(name)] if isinstance(value, list) else value[name]
        except (IndexError, KeyError, TypeError, ValueError):
            raise KeyError(f"there is no {path!r} in {value!r}") from None
    return value


def differences(expected: Any, actual: Any, path: str = "") -> list[str]:
    """How the result differs from what is expected; empty if it does not.

    An object's other members don't count; a list's items do. An object with one member that begins with `$` is a matcher.
    """
    where = path or "value"
    if isinstance(expected, Mapping):
        name = next(iter(expected), "")
        if len(expected) == 1 and name in _MATCHERS:
            return _MATCHERS[name](expected[name], actual, where)
        if not isinstance(actual, Mapping):
            return [f"{where}: expected an object, is {actual!r}"]
        found = []
        for key, value in expected.items():
            inner = f"{path}.{key}".lstrip(".")
            if key in actual:
                found += differences(value, actual[key], inner)
            elif value is not None and value != {"$absent": True}:
                found.append(f"{inner}: expected {value!r}, is absent")
        return found
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return [f"{where}: expected {len(expected)} items, is {actual!r}"]
        found = []
        for number, (each, item) in enumerate(zip(expected, actual, strict=True)):
            found += differences(each, item, f"{path}.{number}".lstrip("."))
        return found
    # True equals 1 in Python, and not in JSON.
    same = expected == actual and isinstance(expected, bool) == isinstance(actual, bool)
    return [] if same else [f"{where}: expected {expected!r}, is {actual!r}"]


def _if(fits: bool, expected: str, actual: Any, where: str) -> list[str]:
    return [] if fits else [f"{where}: expected {expected}, is {actual!r}"]


def _number(actual: Any) -> float:
    return actual if isinstance(actual, int | float) and not isinstance(actual, bool) else float("nan")


def _count(wanted: Any, actual: Any, where: str) -> list[str]:
    if not isinstance(actual, list):
        return [f"{where}: expected a list, is {actual!r}"]
    return differences(wanted, len(actual), f"{where} (count)")


def _unordered(values: list[Any], actual: Any, where: str) -> list[str]:
    left = list(actual) if isinstance(actual, list) else []
    for value in values:
        found = next((number for number, item in enumerate(left) if not differences(value, item)), None)
        if found is None:
            return [f"{where}: expected {value!r} in any order, is {actual!r}"]
        del left[found]
    return _if(not left, f"only {values!r}", actual, where)


#: By name: how a matcher's argument and the actual value differ.
_MATCHERS: dict[str, Callable[[Any, Any, str], list[str]]] = {
    "$any": lambda _, actual, where: _if(actual is not None, "a value", actual, where),
    "$absent": lambda _, actual, where: _if(actual is None, "nothing", actual, where),
    "$matches": lambda text, actual, where: _if(
        isinstance(actual, str) and re.search(text, actual) is not None, f"a text like {text!r}", actual, where
    ),
    "$not": lambda value, actual, where: _if(bool(differences(value, actual)), f"not {value!r}", actual, where),
    "$ge": lambda least, actual, where: _if(_number(actual) >= least, f"{least} or more", actual, where),
    "$le": lambda most, actual, where: _if(_number(actual) <= most, f"{most} or less", actual, where),
    "$count": _count,
    "$contains": lambda value, actual, where: _if(
        isinstance(actual, list) and any(not differences(value, item) for item in actual),
        f"a list with {value!r}",
        actual,
        where,
    ),
    "$each": lambda value, actual, where: (
        [each for number, item in enumerate(actual) for each in differences(value, item, f"{where}.{number}")]
        if isinstance(actual, list)
        else [f"{where}: expected a list, is {actual!r}"]
    ),
    "$unordered": _unordered,
}
