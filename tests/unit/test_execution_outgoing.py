"""Bodies, content types, and slots."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from tests.support.cases import each

from tocsin.service_calls.execution.order import encode_body
from tocsin.service_calls.execution.slots import Slots

TEXT = "text/plain; charset=utf-8"


@each(
    "body, data, content_type",
    [
        (b'{"a" : [1, 2.0]}', b'{"a" : [1, 2.0]}', "application/json"),
        (b"null", b"null", "application/json"),
        (b"[]", b"[]", "application/json"),
        (b'"hello"', b"hello", TEXT),
        (b'""', b"", TEXT),
        (b'"{\\"a\\": 1}"', b'{"a": 1}', "application/json"),
        (b'"{\\"a\\": 1"', b'{"a": 1', TEXT),
        (b'"17"', b"17", "application/json"),
        (b'"\\u00e4\\u0000\\ud83d\\ude00"', "ä\0\U0001f600".encode(), TEXT),
        (b'"' + b"[" * 50_000 + b'"', b"[" * 50_000, TEXT),
    ],
)
def test_bodies_are_encoded_with_their_content_type(body: bytes, data: bytes, content_type: str) -> None:
    assert encode_body(msgspec.Raw(body)) == (data, content_type)


@dataclass(eq=False)
class Item:
    destination: str


def test_destinations_take_fair_turns_within_both_limits() -> None:
    slots: Slots[Item] = Slots(in_flight_max=4, per_destination_max=3)
    items = [Item(name) for name in "aaaaaaab"]
    for item in items:
        slots.add(item)
    first = slots.admit()
    assert [item.destination for item in first] == ["a", "b", "a", "a"]
    assert (slots.in_flight, slots.deferred) == (4, 4)
    slots.answered(first[1])
    assert slots.admit() == []  # Its result is not durable yet.
    slots.released()
    assert slots.admit() == []  # Only `a` waits, and it has its three slots.
    slots.answered(first[0])
    assert [item.destination for item in slots.admit()] == ["a"]
    slots.released()
    assert slots.admit() == []
    assert (slots.in_flight, slots.deferred) == (3, 3)


def test_a_busy_destination_delays_another_by_one_turn_only() -> None:
    slots: Slots[Item] = Slots(in_flight_max=1, per_destination_max=1)
    for name in ("a", "a", "a", "b"):
        slots.add(Item(name))
    order = []
    for _ in range(4):
        (item,) = slots.admit()
        order.append(item.destination)
        slots.answered(item)
        slots.released()
    assert order == ["a", "b", "a", "a"]


def test_deferred_items_can_be_removed() -> None:
    slots: Slots[Item] = Slots(in_flight_max=1, per_destination_max=1)
    items = [Item(name) for name in "abc"]
    for item in items:
        slots.add(item)
    (going,) = slots.admit()
    assert slots.drop_deferred() == items[1:]
    assert (slots.in_flight, slots.deferred) == (1, 0)
    slots.answered(going)
    slots.released()
    assert slots.admit() == []
