"""The keys of JWTs: which one signs, and how they succeed one another."""

from __future__ import annotations

import asyncio

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet
from tests.support.patience import PATIENCE_S

from tocsin.administration import SIGNING_KEYS
from tocsin.model.credential import LIFETIME_US_MAX, Credential
from tocsin.model.credential_type import CredentialType
from tocsin.model.errors import StoreUnavailable
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND
from tocsin.ports.records import Records
from tocsin.ports.seals import NoSeals, Seals
from tocsin.sealing import KeySeals
from tocsin.stores.memory import MemoryStore
from tocsin.targets import signing_keys
from tocsin.targets.identities import TokenRefused
from tocsin.targets.signing_keys import KEPT_AFTER_US, PUBLISHED_BEFORE_US, SIGNS_US, SigningKeys
from tocsin.tasks import end_tasks
from tocsin.testing.clock import FakeClock

CREDENTIAL = Credential("orders", "api", CredentialType.JWT, 0, 0, audience="https://receiver.test")


FIRST, SECOND = bytes(range(32)), bytes(range(32, 64))


def keys(records: Records, clock: FakeClock, seals: Seals | None = None) -> SigningKeys:
    return SigningKeys(records, clock, seals or NoSeals(), "https://timers.example", 5.0)


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
    await other.turn()
    assert await kids(other) == both[1:]


async def test_those_who_wait_are_notified_when_the_key_of_a_node_whose_clock_is_ahead_can_sign() -> None:
    ahead, clock, records = FakeClock(), FakeClock(), MemoryStore()
    ahead.advance(US_PER_SECOND)
    await keys(records, ahead).turn(wanted=True)
    one, notified_at = keys(records, clock), list[int]()
    one.ready = lambda: notified_at.append(clock.now_us())
    await one.turn()
    with pytest.raises(TokenRefused):
        one.sign(CREDENTIAL, clock.now_us())
    assert notified_at == []
    clock.advance(US_PER_SECOND)
    await one.turn()
    await one.turn()
    assert notified_at == [clock.now_us()] and one.sign(CREDENTIAL, clock.now_us())


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


async def test_a_key_that_nobody_can_open_any_more_is_succeeded_at_once() -> None:
    clock, records = FakeClock(), MemoryStore()
    await keys(records, clock, KeySeals([FIRST])).turn(wanted=True)
    one, woken = keys(records, clock, KeySeals([SECOND])), list[int]()
    one.ready = lambda: woken.append(clock.now_us())
    clock.advance(US_PER_DAY)
    await one.turn()
    lost, made = await kids(one)
    assert signed_by(one, clock) == made and woken == [clock.now_us()]
    # One is enough, and the other one goes when its tokens have.
    await one.turn()
    assert await kids(one) == [lost, made]
    clock.advance(KEPT_AFTER_US)
    await one.turn()
    assert await kids(one) == [made]


async def test_a_next_key_that_can_not_be_opened_takes_the_place_of_no_other() -> None:
    clock, records = FakeClock(), MemoryStore()
    one, other = keys(records, clock, KeySeals([FIRST])), keys(records, clock, KeySeals([SECOND, FIRST]))
    await one.turn(wanted=True)
    clock.advance(SIGNS_US - PUBLISHED_BEFORE_US)
    await other.turn()
    first, lost = await kids(other)
    await one.turn()
    _, _, made = await kids(one)
    clock.advance(PUBLISHED_BEFORE_US - 1)
    assert signed_by(one, clock) == first
    clock.advance(1)
    assert signed_by(one, clock) == made != lost


async def test_a_key_that_is_replaced_signs_no_more_and_goes_once_its_tokens_have_expired() -> None:
    clock, records = FakeClock(), MemoryStore()
    one = keys(records, clock)
    await one.turn(wanted=True)
    clock.advance(SIGNS_US - PUBLISHED_BEFORE_US)
    await one.turn()
    former = await kids(one)
    assert [state for _, state in await one.listed(clock.now_us())] == ["signs", "next"]
    assert await keys(records, clock).replace(clock.now_us()) is not None
    await one.turn()
    made = (await kids(one))[2]
    assert [state for _, state in await one.listed(clock.now_us())] == ["former", "former", "signs"]
    assert await kids(one) == [*former, made] and signed_by(one, clock) == made
    clock.advance(LIFETIME_US_MAX)
    await one.turn()
    assert await kids(one) == [*former, made], "a node may have used them for a moment"
    clock.advance(PUBLISHED_BEFORE_US - LIFETIME_US_MAX)
    await one.turn()
    assert await kids(one) == [made] and signed_by(one, clock) == made


async def test_a_damaged_key_does_not_keep_the_next_one_from_being_made() -> None:
    clock, records = FakeClock(), MemoryStore()
    assert await records.put_record(SIGNING_KEYS, f"{1:08}", b"{", None)
    one = keys(records, clock)
    await one.turn(wanted=True)
    assert [signed_by(one, clock)] == await kids(one)


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


class Away(MemoryStore):
    """A store that can't be reached. `asked` counts the attempts."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.was_asked = 0, asyncio.Event()

    async def records_versions(self, *kinds: str, urgent: bool = False) -> tuple[int, ...]:
        self.asked += 1
        self.was_asked.set()
        await asyncio.sleep(0)
        raise StoreUnavailable("it is away")


async def test_a_store_that_is_away_is_not_asked_again_at_once_for_a_key_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signing_keys, "_RETRY_S", 1e6)
    clock, records = FakeClock(), Away()
    one = keys(records, clock)
    with pytest.raises(TokenRefused):
        one.sign(CREDENTIAL, clock.now_us())
    running = asyncio.create_task(one.run())
    await asyncio.wait_for(records.was_asked.wait(), PATIENCE_S)
    for _ in range(100):
        await asyncio.sleep(0)
    assert records.asked == 1 and not running.done()
    await end_tasks(running)


class Slow(MemoryStore):
    """Answers when it is `open`, and then fails if it is `away`. `asked` counts the reads of versions."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.away, self.was_asked, self.open = 0, False, asyncio.Event(), asyncio.Event()

    async def records_versions(self, *kinds: str, urgent: bool = False) -> tuple[int, ...]:
        self.asked += 1
        self.was_asked.set()
        await self.open.wait()
        if self.away:
            raise StoreUnavailable("it is away")
        return await super().records_versions(*kinds)


@pytest.mark.parametrize("away", [False, True])
async def test_all_who_ask_for_the_keys_at_once_share_one_read(away: bool) -> None:
    clock, records = FakeClock(), Slow()
    one = keys(records, clock)
    asking = [asyncio.create_task(one.published()) for _ in range(20)]
    await asyncio.wait_for(records.was_asked.wait(), PATIENCE_S)
    asking[0].cancel()
    records.away = away
    records.open.set()
    first, *others = await asyncio.gather(*asking, return_exceptions=True)
    assert records.asked == 1 and isinstance(first, asyncio.CancelledError)
    assert all(isinstance(found, StoreUnavailable) if away else found == [] for found in others)


async def test_keys_are_read_again_after_a_second_and_at_once_while_there_is_none() -> None:
    clock, records = FakeClock(), Slow()
    records.open.set()
    one, other = keys(records, clock), keys(records, clock)
    assert await kids(one) == [] == await kids(one)
    await other.turn(wanted=True)
    made = await kids(one)
    assert made == await kids(other) != []
    records.asked = 0
    clock.advance(US_PER_SECOND - 1)
    assert await kids(one) == made and records.asked == 0
    clock.advance(1)
    assert await kids(one) == made and records.asked == 1
