"""The table of operations and the table of errors are complete."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.cases import each

from tocsin.model.errors import DefiniteFailure, FieldError, InvalidInput, OutcomeUnknown, ShardUnavailable, TocsinError
from tocsin.model.validation import InputLimits
from tocsin.web.api import request
from tocsin.web.api.operation import Reach
from tocsin.web.api.routes import OPERATIONS
from tocsin.web.http import errors


def test_names_and_routes_are_unique() -> None:
    names = [operation.name for operation in OPERATIONS]
    routes = [(operation.method, path) for operation in OPERATIONS for path in operation.paths]
    assert len(set(names)) == len(names)
    assert len(set(routes)) == len(routes)


def test_every_operation_declares_role_and_scope() -> None:
    for operation in OPERATIONS:
        assert (operation.role is None) == (operation.reach is Reach.OPEN), operation.name
        assert operation.request is None or operation.method == "POST"


def test_a_valid_payload_fits_into_a_body() -> None:
    assert request.ApiLimits().request_bytes_max > 2 * InputLimits().payload_bytes_max


def kinds(base: type[TocsinError]) -> Iterator[type[TocsinError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_every_error_has_a_status() -> None:
    for kind in kinds(TocsinError):
        error = kind.__new__(kind)
        Exception.__init__(error, "it went wrong")
        status = errors.problem_kind(error).status
        assert 400 <= status <= 503, kind
        assert status not in (400, 500) or issubclass(kind, InvalidInput) or errors.problem_kind(error).hidden, kind


@each("error", [KeyError("secret"), DefiniteFailure("secret"), OutcomeUnknown("secret")])
def test_unknown_errors_reveal_no_details(error: Exception) -> None:
    body = errors.problem(error, instance="/x", correlation_id="c-1", now_us=0).body
    assert b"secret" not in body
    assert b"c-1" in body


def test_retry_after_is_never_zero() -> None:
    for seconds, header in ((0.0, b"1"), (0.2, b"1"), (1.2, b"2"), (30.0, b"30")):
        assert (b"retry-after", header) in errors.problem_headers(ShardUnavailable("moving", seconds))


def test_fields_are_listed() -> None:
    error = InvalidInput(FieldError("a.b", "is bad"), FieldError("c", "too"))
    assert [field.path for field in errors.bad_fields(error)] == ["a.b", "c"]
    assert errors.client_message(error, "") == "a.b: is bad; c: too"
