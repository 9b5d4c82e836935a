"""Reads request bodies: size and time limits, media type, JSON, and errors that name the field and what is accepted."""

from __future__ import annotations

import asyncio
import difflib
import re
from codecs import utf_8_decode
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from enum import StrEnum
from functools import cache
from typing import Any, Generic, TypeVar, get_args, get_type_hints

import msgspec

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.web.http.batches import joined
from tocsin.web.http.errors import BodyTimeout, BodyTooLarge, MalformedBody, UnsupportedMediaType

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Struct = TypeVar("Struct", bound=msgspec.Struct)

#: A refused body of up to this many times the accepted size is still received and discarded, so that its sender can
#: read the response. A larger one closes the connection.
DISCARDED_SIZES_MAX = 4
#: A body is collected in parts of at least this size: each costs memory of its own, however little of it arrives at a time.
_PART_BYTES = 64 * 1024
#: Digits of a content-length that are read: more than any real size has.
_SIZE_DIGITS_MAX = 20
#: A large body is checked in parts that stay in the processor's cache: as a whole it takes twice as long, and its size again.
_UTF8_PART_BYTES = 64 * 1024

_JSON = b"application/json"


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


def check_content_type(headers: Mapping[bytes, bytes]) -> None:
    """Raises UnsupportedMediaType unless the body is declared as plain JSON in UTF-8."""
    declared = headers.get(b"content-type")
    if declared != _JSON:
        _check_declared(declared)
    encoding = headers.get(b"content-encoding")
    if encoding is not None and encoding.lower() != b"identity":
        raise UnsupportedMediaType("compressed bodies are not accepted; send it without content-encoding")


def _check_declared(declared: bytes | None) -> None:
    if declared is None:
        raise UnsupportedMediaType("the content-type header is missing; send content-type: application/json")
    media_type, *parameters = declared.decode("latin-1").lower().split(";")
    if media_type.strip() != "application/json":
        raise UnsupportedMediaType(
            f"content-type {media_type.strip() or '(empty)'} is not accepted; send content-type: application/json"
        )
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8", "us-ascii"):
            raise UnsupportedMediaType(
                "the charset must be UTF-8; send content-type: application/json without a charset"
            )


def size_of(announced: bytes) -> int:
    """The number in a content-length header. Only its first significant digits are read: Python refuses to parse numbers of
    thousands of digits, and a client may send that many zeros."""
    return int(announced.lstrip(b"0")[:_SIZE_DIGITS_MAX] or b"0")


async def read_body(receive: Receive, announced: bytes | None, size_max: int, timeout_s: float) -> bytes:
    """The whole body; `announced` is the content-length header.

    Raises BodyTooLarge (for an announced size before anything is read), BodyTimeout when it isn't complete after
    `timeout_s`, ClientGone.
    """
    size = 0 if announced is None else size_of(announced)
    if size > size_max:
        raise BodyTooLarge(
            f"the body has {size} bytes; at most {size_max} are accepted",
            discard=size <= DISCARDED_SIZES_MAX * size_max,
        )
    parts: list[bytes] = []
    part = bytearray()
    size = 0
    more = True
    try:
        async with asyncio.timeout(timeout_s):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                part += message.get("body", b"")
                if size + len(part) > size_max:
                    raise BodyTooLarge(f"the body has more than {size_max} bytes; at most {size_max} are accepted")
                more = message.get("more_body", False)
                if more and len(part) >= _PART_BYTES:
                    parts.append(bytes(part))
                    size += len(part)
                    part.clear()
    except TimeoutError:
        raise BodyTimeout(f"the body was not complete after {timeout_s:g} s") from None
    if not parts:
        return bytes(part)
    parts.append(bytes(part))
    return await joined(parts, size + len(part))


def check_utf8(body: bytes) -> None:
    """Raises MalformedBody. The JSON decoder checks only the strings that it returns, not the inside of payloads."""
    if body.isascii():
        return
    view, begins = memoryview(body), 0
    try:
        while begins < len(view):
            ends = begins + _UTF8_PART_BYTES
            begins += utf_8_decode(view[begins:ends], "strict", ends >= len(view))[1]
    except UnicodeDecodeError as error:
        raise MalformedBody(f"the body is not UTF-8: {error.reason} at byte {begins + error.start}") from None


class JsonReader(Generic[Struct]):
    """Decodes one struct."""

    def __init__(self, struct: type[Struct]) -> None:
        self._struct = struct
        self._decoder = msgspec.json.Decoder(struct)

    def read(self, body: bytes | msgspec.Raw, at: str = "") -> Struct:
        """The struct; `at` is the path of this text within the whole body.

        Raises InvalidInput with the first field that has a wrong type or name, MalformedBody for invalid JSON.
        """
        try:
            return self._decoder.decode(body)
        except msgspec.ValidationError as error:
            raise InvalidInput(field_error(str(error), self._struct, at)) from None
        except msgspec.DecodeError as error:
            raise MalformedBody(_malformed(str(error))) from None
        except UnicodeDecodeError:
            raise MalformedBody("the body is not UTF-8") from None
        except RecursionError:
            raise MalformedBody("the body is nested too deeply") from None


#: Before the path in the decoder's message. Anything longer is not a path: paths consist of declared fields and array
#: positions, while the text before them may quote a field name that the client invented.
_AT = " - at `$"
_AT_CHARS_MAX = 200
_MALFORMED = re.compile(r"JSON is malformed: (.*) \(byte (\d+)\)\Z")
_EXPECTED = re.compile(r"Expected `(.+)`, got `(.+)`\Z")
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`\Z", re.DOTALL)
_FIELD_NAME_CHARS_MAX = 100

_NOUNS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}

#: An example value, for fields whose type alone does not show the format.
_FORMS = {
    **dict.fromkeys(("executeAt", "executeAfter", "executeBefore", "dueAt", "expiresAt"), "2027-01-31T12:00:00Z"),
    **dict.fromkeys(("delay", "maxAttemptsDuration", "initialInterval", "maxInterval", "retention", "grace"), "30s"),
    "expireAfter": "15m",
}


@cache
def _types(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The enum or struct of each field that has one, also of the fields within, by their names in JSON."""
    hints, found = get_type_hints(struct), dict[str, Any]()
    for field in msgspec.structs.fields(struct):
        for kind in _classes(hints[field.name]):
            if issubclass(kind, StrEnum | msgspec.Struct):
                found[field.encode_name] = kind
            if issubclass(kind, msgspec.Struct):
                found |= _types(kind)
    return found


def _classes(hint: Any) -> Iterator[type[Any]]:
    """The classes that a type is made of."""
    if parts := get_args(hint):
        for part in parts:
            yield from _classes(part)
    elif isinstance(hint, type):
        yield hint


#: Field names that people write by mistake, with the right name. Applies where the right name is a field.
_MISTAKEN = {
    "maxRetries": ("maxAttempts", "which counts all attempts, including the first"),
    "maxRetryAttemptsDuration": ("maxAttemptsDuration", "which is measured from the first attempt"),
    "url": ("callbackUrl", "the URL to call"),
    "namespace": ("name", "the namespace's name"),
    "timeoutSeconds": ("callbackTimeoutSeconds", "in seconds"),
    "executeAt": ("dueAt", "the field's name in service calls"),
    "callbackUrl": ("requestSpec", "which contains method, url, headers and body"),
}


def field_error(text: str, struct: type[msgspec.Struct], at: str) -> FieldError:
    """The decoder's message as an error with the dotted path of the field."""
    path = ""
    where = text.rfind(_AT, -_AT_CHARS_MAX)
    if where >= 0:
        text, path = text[:where], text[where + len(_AT) : -1].lstrip(".")
    path = _join(at, path)
    field = _FIELD.match(text)
    if field is not None:
        name = field[2] if len(field[2]) <= _FIELD_NAME_CHARS_MAX else field[2][:_FIELD_NAME_CHARS_MAX] + "…"
        if field[1] == "missing required":
            return FieldError(_join(path, name), "is missing")
        known = _types(struct).get(path.rsplit(".", 1)[-1], struct)
        return FieldError(_join(path, name), _unknown(name, known.__struct_encode_fields__))
    last = path
    while last.endswith("]"):
        last = last[: last.rfind("[")] if "[" in last else ""
    last = last.rsplit(".", 1)[-1]
    if path.endswith("[...]"):
        return FieldError(path.removesuffix("[...]"), "has a value that " + _reason(text, last, struct))
    reason = _reason(text, last, struct)
    return FieldError(path, reason if path else f"the body {reason}")


def _unknown(name: str, fields: tuple[str, ...]) -> str:
    right, remark = _MISTAKEN.get(name, ("", ""))
    if right in fields:
        return f"is not a field here; use {right}, {remark}"
    near = difflib.get_close_matches(name, fields, n=1)
    if near:
        return f"is not a field here; did you mean {near[0]}?"
    return f"is not a field here; fields are: {', '.join(fields)}" if fields else "is not a field here; there are none"


def _reason(text: str, field: str, struct: type[msgspec.Struct]) -> str:
    types = _EXPECTED.match(text)
    if types is not None:
        wanted, got = types.groups()
        if wanted == "int" and got == "float":
            return "must be a whole number, written without a fraction"
        nouns = " or ".join(_NOUNS.get(name, name) for name in wanted.split(" | "))
        example = f"; write it as {_FORMS[field]}" if field in _FORMS else ""
        return f"must be {nouns}, not {_NOUNS.get(got, got)}{example}"
    if text.startswith("Invalid enum value") and (enum := _types(struct).get(field)) is not None:
        return f"must be one of {', '.join(enum)}"
    return f"can't be accepted: {text[:1].lower()}{text[1:]}"


def _malformed(text: str) -> str:
    place = _MALFORMED.match(text)
    if place is not None:
        return f"the body is not JSON: {place[1]} at byte {place[2]}"
    return "the body is not JSON: it ends too early"


def _join(path: str, name: str) -> str:
    if not path or not name or name.startswith("["):
        return path + name
    return f"{path}.{name}"
