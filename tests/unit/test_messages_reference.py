"""The reference page of messages lists exactly the existing types and fields."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from tests.support.cases import each

from tocsin.model.hooks import Hook, Hooks
from tocsin.ports.bus import Envelope
from tocsin.service_calls.messages import (
    COMMANDS,
    EVENTS,
    REPLIES,
    ErrorMeta,
    Instant,
    JobFilter,
    Message,
    RequestSpec,
    ResponseMeta,
    RetrySpec,
)

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "messages.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
STRUCTS = [
    Envelope,
    RequestSpec,
    RetrySpec,
    Hooks,
    Hook,
    JobFilter,
    ResponseMeta,
    ErrorMeta,
    *COMMANDS,
    *REPLIES,
    *EVENTS,
]


def test_every_type_has_its_section_and_no_other():
    assert sorted(SECTIONS) == sorted(struct.__name__ for struct in STRUCTS)


@each("struct", STRUCTS)
def test_fields_are_those_of_the_code(struct):
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", SECTIONS[struct.__name__], re.MULTILINE)
    fields = [(field.encode_name, kind_of(field)) for field in msgspec.inspect.type_info(struct).fields]
    if issubclass(struct, Message):
        # Every message has its tenant when it is sealed.
        fields = [("tenantId", "string"), *(field for field in fields if field != ("tenantId", "string, optional"))]
    assert [(name, kind) for name, kind, _ in rows] == fields


def kind_of(field: msgspec.inspect.Field) -> str:
    return plain(field.type) + ("" if field.required else ", optional")


def plain(kind: msgspec.inspect.Type) -> str:
    match kind:
        case msgspec.inspect.UnionType(types=types):
            return " or ".join(plain(one) for one in types if not is_unset(one))
        case msgspec.inspect.VarTupleType(item_type=item):
            return f"array of {plain(item)}"
        case msgspec.inspect.DictType(value_type=value):
            return f"object of {plain(value)}"
        case msgspec.inspect.StructType(cls=cls):
            return cls.__name__
        case msgspec.inspect.RawType():
            return "any JSON"
        case msgspec.inspect.CustomType(cls=cls) if cls is Instant:
            return "instant"
    names = {
        "StrType": "string",
        "IntType": "integer",
        "FloatType": "number",
        "BoolType": "boolean",
        "NoneType": "null",
    }
    return names[type(kind).__name__]


def is_unset(kind: msgspec.inspect.Type) -> bool:
    return isinstance(kind, msgspec.inspect.CustomType) and kind.cls is msgspec.UnsetType
