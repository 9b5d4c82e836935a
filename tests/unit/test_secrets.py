"""Which secrets sign at which time."""

from __future__ import annotations

import pytest
from tests.support.cases import each

from tocsin.administration import namespaces, put_namespace
from tocsin.model.errors import RotationPending
from tocsin.model.instants import format_instant
from tocsin.model.namespace import Namespace
from tocsin.model.secrets import SIGNING_MAX, SigningSecrets, decode_secrets, encode_secrets, new_secret, sign
from tocsin.stores.memory import MemoryStore

HOUR = 3_600_000_000
NOW = 1_801_396_800_000_000
FIRST = SigningSecrets().rotated("a", NOW, HOUR)
ROTATED = FIRST.rotated("b", NOW, HOUR)


def test_the_first_secret_signs_alone() -> None:
    assert SigningSecrets().at(NOW) == ()
    assert FIRST.at(NOW) == ("a",)
    assert FIRST.previous_until(NOW) is None


@each("after_us, signing", [(0, ("b", "a")), (HOUR - 1, ("b", "a")), (HOUR, ("b",)), (2 * HOUR, ("b",))])
def test_both_secrets_sign_until_the_grace_ends_newest_first(after_us: int, signing: tuple[str, ...]) -> None:
    assert ROTATED.at(NOW + after_us) == signing
    assert ROTATED.previous_until(NOW + after_us) == (NOW + HOUR if len(signing) > 1 else None)
    assert ROTATED.kept(NOW + after_us).at(NOW) == signing


def test_rotation_within_the_grace_requires_force() -> None:
    with pytest.raises(RotationPending, match=format_instant(NOW + HOUR)):
        ROTATED.rotated("c", NOW + HOUR - 1, HOUR)
    assert ROTATED.rotated("c", NOW + HOUR, HOUR).at(NOW + HOUR) == ("c", "b")


def test_forced_rotation_keeps_secrets_that_receivers_may_use() -> None:
    """A client that did not get the answer of the first rotation rotates again: receivers use only `a`."""
    forced = ROTATED.rotated("c", NOW + HOUR // 2, HOUR, force=True)
    assert forced.at(NOW + HOUR - 1) == ("c", "b", "a")
    assert forced.at(NOW + HOUR) == ("c", "b")
    assert forced.at(NOW + HOUR // 2 + HOUR) == ("c",)


def test_forced_rotation_can_shorten_but_not_extend_a_grace() -> None:
    assert ROTATED.rotated("c", NOW, 0, force=True).at(NOW) == ("c",)
    assert ROTATED.rotated("c", NOW, HOUR // 2, force=True).at(NOW + HOUR // 2) == ("c",)
    assert ROTATED.rotated("c", NOW, 9 * HOUR, force=True).at(NOW + HOUR) == ("c", "b")


def test_number_of_signing_secrets_is_limited() -> None:
    secrets = FIRST
    for number in range(10):
        secrets = secrets.rotated(f"s{number}", NOW, HOUR, force=True)
    assert secrets.at(NOW) == ("s9", "s8", "s7")
    assert len(secrets.at(NOW)) == SIGNING_MAX


def test_rotation_without_grace_ends_the_replaced_secret_at_once() -> None:
    assert FIRST.rotated("b", NOW, 0) == SigningSecrets("b")


def test_repeated_rotation_changes_nothing() -> None:
    assert ROTATED.rotated("b", NOW + 1, HOUR) == ROTATED
    assert ROTATED.rotated("b", NOW + 1, 0) == SigningSecrets("b")
    assert FIRST.rotated("a", NOW, HOUR) == FIRST


def test_rotation_to_a_former_secret_keeps_it_once() -> None:
    assert ROTATED.rotated("a", NOW, HOUR, force=True).at(NOW) == ("a", "b")


async def test_the_stored_forms() -> None:
    assert decode_secrets(encode_secrets(ROTATED)) == ROTATED
    store, namespace = MemoryStore(), Namespace("n", 1, 0, 0, secret="b", previous_secrets=ROTATED.previous)
    await put_namespace(store, namespace, create=True)
    (stored,) = await namespaces(store)
    assert stored.signing == ROTATED


def test_generated_secrets_are_valid_and_differ() -> None:
    made = {new_secret() for _ in range(10)}
    assert len(made) == 10
    assert len({sign(secret, "m1", 0, b"") for secret in made}) == 10
