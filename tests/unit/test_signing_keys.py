"""The keys of JWTs: which one signs, and how they succeed one another."""

from __future__ import annotations

from joserfc import jwt
from joserfc.jwk import KeySet

from tocsin.model.credential import Credential
from tocsin.model.credential_type import CredentialType
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND
from tocsin.ports.records import Records
from tocsin.ports.seals import NoSeals
from tocsin.stores.memory import MemoryStore
from tocsin.targets.identities import TokenRefused
from tocsin.targets.signing_keys import KEPT_AFTER_US, PUBLISHED_BEFORE_US, SIGNS_US, SigningKeys
from tocsin.testing.clock import FakeClock

CREDENTIAL = Credential("orders", "api", CredentialType.JWT, 0, 0, audience="https://receiver.test")


def keys(records: Records, clock: FakeClock) -> SigningKeys:
    return SigningKeys(records, clock, NoSeals(), "https://timers.example", 5.0)


async def kids(of: SigningKeys) -> list[str]:
    return [key["kid"] for key in await of.published()]


def signed_by(of: SigningKeys, clock: FakeClock) -> str:
    """The id of the key that signs, by the header of what it signs."""
    token = of.sign(CREDENTIAL, clock.now_us())
    return str(jwt.decode(token, KeySet.import_key_set({"keys": of.present}), algorithms=["ES256"]).header["kid"])


async def test_the_next_key_is_published_a_day_before_it_signs_and_the_former_a_day_after() -> None:
    clock, records = FakeClock(), MemoryStore()
    one, other = keys(records, clock), keys(records, clock)
    assert await kids(one) == []
    try:
        one.sign(CREDENTIAL, clock.now_us())
        raise AssertionError("there is no key yet")
    except TokenRefused as refused:
        assert "being made" in str(refused)
    await one.turn()
    await other.turn()
    first = await kids(one)
    assert len(first) == 1 and await kids(other) == first, "any node has the same keys"
    assert signed_by(one, clock) == first[0]

    clock.advance(SIGNS_US - PUBLISHED_BEFORE_US - 1)
    await one.turn()
    assert await kids(one) == first
    clock.advance(1)
    await one.turn()
    await other.turn()
    both = await kids(other)
    assert len(both) == 2 and both[0] == first[0]
    assert signed_by(other, clock) == first[0], "published, and not used yet"

    clock.advance(PUBLISHED_BEFORE_US - 1)
    assert signed_by(other, clock) == first[0]
    clock.advance(1)
    assert signed_by(other, clock) == both[1]
    clock.advance(KEPT_AFTER_US - 1)
    await one.turn()
    assert await kids(other) == both, "tokens of the former key are still verified"
    clock.advance(1)
    await one.turn()
    assert await kids(other) == both[1:]


async def test_a_service_that_was_off_for_long_goes_on_with_its_key_until_receivers_can_know_the_next() -> None:
    clock, records = FakeClock(), MemoryStore()
    one = keys(records, clock)
    await one.turn(wanted=True)
    first = await kids(one)
    clock.advance(10 * SIGNS_US)
    await one.turn()
    both = await kids(one)
    assert (len(both), signed_by(one, clock)) == (2, first[0])
    clock.advance(US_PER_DAY)
    assert signed_by(one, clock) == both[1]


async def test_a_token_has_the_claims_that_receivers_check() -> None:
    clock = FakeClock()
    one = keys(MemoryStore(), clock)
    await one.turn(wanted=True)
    found = jwt.decode(one.sign(CREDENTIAL, clock.now_us()), KeySet.import_key_set({"keys": await one.published()}))
    now_s = clock.now_us() // US_PER_SECOND
    assert found.claims.pop("jti")
    assert found.claims == {
        "iss": "https://timers.example", "sub": "tocsin:orders:api", "aud": "https://receiver.test",
        "iat": now_s, "exp": now_s + 600,
    }  # fmt: skip
