"""YAML as JSON has it: what is written without quotes is true, false, null, a number, or else text. So an instant, `no`,
`1:30` and `0123` stay the texts that they are."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml

from tocsin.cli.command import WrongUsage

try:
    # Ten times faster; a wheel for an unusual platform may lack it.
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeDumper, SafeLoader

_TAG = "tag:yaml.org,2002:"
#: Columns after which the writer may fold a text.
_WIDTH = 120


class _Loader(SafeLoader):  # type: ignore[misc]
    """Resolves no more than what is below, and refuses a key that is there twice."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


# Each is a part of what the writer puts between quotes, so that what it writes is read as it was.
for _kind, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"~|null|", "~n\0"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?[0-9]+\.[0-9]*([eE][-+][0-9]+)?", "-+0123456789"),
    ("merge", r"<<", "<"),
):
    _firsts = ["" if each == "\0" else each for each in _first]
    _Loader.add_implicit_resolver(f"{_TAG}{_kind}", re.compile(rf"^(?:{_pattern})$"), _firsts)


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
    own: set[Any] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a name must be a text; quote {{ … }}", key.start_mark)
        if key.tag != f"{_TAG}merge":
            if key.value in own:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is there twice", key.start_mark)
            own.add(key.value)
    loader.flatten_mapping(node)
    return dict(loader.construct_pairs(node, deep=True))


_Loader.add_constructor(f"{_TAG}map", _mapping)


def load(text: str, source: str) -> Any:
    """The value of the text's only document. Raises WrongUsage, which names line and column."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise WrongUsage(f"{source}{place}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise WrongUsage(f"{source}: is not YAML: {error}") from None


def dump(value: Any) -> str:
    """The value as YAML, its keys in their order."""
    text = yaml.dump(value, Dumper=SafeDumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return str(text)
