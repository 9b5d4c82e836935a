"""Paths with parameters, and queries."""

from __future__ import annotations

import pytest
from tests.support.cases import each

from tocsin.model.errors import InvalidInput
from tocsin.web.api.operation import Operation
from tocsin.web.api.routes import Paths, read_query


@pytest.fixture
def paths() -> Paths[str]:
    made: Paths[str] = Paths()
    made.add("GET", "/a/{x}", "one", template=True)
    made.add("PUT", "/a/{x}", "put one", template=True)
    made.add("GET", "/a/{x}/b/{y}", "two", template=True)
    made.add("GET", "/a/all", "all", template=True)
    return made


def test_parameters_match_parts_of_the_path(paths: Paths[str]) -> None:
    found = paths.find(b"/a/1/b/2%2F%C3%BC")
    assert found is not None
    assert (found.by_method, found.parameters) == ({"GET": "two"}, {"x": "1", "y": "2/ü"})
    found = paths.find(b"/a/1")
    assert found is not None
    assert (found.by_method, found.allowed) == ({"GET": "one", "PUT": "put one"}, "GET, PUT")


def test_a_literal_part_precedes_a_parameter(paths: Paths[str]) -> None:
    for path in (b"/a/all", b"/%61/all"):
        found = paths.find(path)
        assert found is not None
        assert (found.by_method, found.parameters) == ({"GET": "all"}, {})


@each("path", [b"", b"/", b"/a", b"/a/", b"/a//b/2", b"/a/1/b", b"/a/1/b/", b"/b/1", b"a/1", b"/a/1/"])
def test_other_paths_are_not_found(paths: Paths[str], path: bytes) -> None:
    assert paths.find(path) is None


def test_a_parameter_that_is_not_utf8_is_named(paths: Paths[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        paths.find(b"/a/1/b/%ff")
    assert [error.path for error in caught.value.errors] == ["y"]


OPERATION = Operation(
    "list",
    "/a/{x}",
    method="GET",
    query=("many", "one"),
    repeated=("many",),
)


def test_query_by_name() -> None:
    assert read_query(b"", OPERATION) == {}
    assert read_query(b"many=b&one=%C3%BC+x&many=a&many=", OPERATION) == {"many": ["b", "a", ""], "one": ["ü x"]}
    assert read_query(b"one", OPERATION) == {"one": [""]}


def test_all_bad_query_parameters_are_named() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_query(b"x=1&one=1&many=1&one=2&two=1", OPERATION)
    assert [error.path for error in caught.value.errors] == ["x", "one", "two"]
