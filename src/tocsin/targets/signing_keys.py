"""The keys with which this service signs JWTs for receivers, and how they succeed one another."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import structlog

from tocsin.administration import SIGNING_KEYS, delete_signing_key, put_signing_key, signing_keys
from tocsin.model.credential import LIFETIME_US_MAX, Credential, SigningKey
from tocsin.model.errors import StoreError
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND
from tocsin.ports.clock import Clock
from tocsin.ports.records import Records
from tocsin.ports.seals import SealBroken, Seals
from tocsin.targets.identities import TokenRefused

#: How long a key signs, how long before that receivers can know it, and how long its last token is verified.
SIGNS_US = 30 * US_PER_DAY
PUBLISHED_BEFORE_US = US_PER_DAY
KEPT_AFTER_US = US_PER_DAY + LIFETIME_US_MAX
#: How long a key stays that was replaced before its time: until its last token has expired, whenever nodes have noticed.
_REPLACED_KEPT_US = LIFETIME_US_MAX + 300 * US_PER_SECOND
#: How often a node looks whether there is another key, or should be; after a failure, and otherwise.
_RETRY_S, _INTERVAL_S = 1.0, 60.0
#: How long what was read is published without another look.
_FRESH_US = US_PER_SECOND
_ALGORITHM = "ES256"
#: Records of keys that can't be read, at most, behind the last one that can.
_DAMAGED_MAX = 10

_log = structlog.get_logger("tocsin.targets")


class SigningKeys:
    """The keys of all nodes of a store, as this node knows them. The first one is made when a credential needs it. Each next
    one is published a day before it signs, and each former one for a day after its last token: receivers may keep what they
    have read that long. A key that can't be opened, since what sealed it is lost, signs nothing: without another one, the
    next signs at once. `issuer` is the URL at which they find the keys."""

    def __init__(self, records: Records, clock: Clock, seals: Seals, issuer: str, timeout_s: float) -> None:
        self.issuer = issuer
        self._records, self._clock, self._seals, self._timeout_s = records, clock, seals, timeout_s
        self._keys: list[SigningKey] = []
        self._private: dict[str, Any] = {}
        # Why keys can't be opened, by their ids, and of which that was logged.
        self._unusable: dict[str, str] = {}
        self._logged = set[str]()
        self._version: int | None = None
        self._wanted = asyncio.Event()
        self._read_at = 0
        self._reading = asyncio.Lock()
        self._shared: asyncio.Task[None] | None = None
        # Whether a key that was read can sign.
        self._signs = False
        #: Called when there is a key to sign with for the first time.
        self.ready: Callable[[], object] = lambda: None

    def sign(self, credential: Credential, now_us: int) -> str:
        """A JWT of the credential, signed with the present key. Raises TokenRefused if there is none yet."""
        from joserfc import jwt

        begun = [each for each in self._keys if each.signs_from <= now_us]
        usable = self._usable(begun)
        if not usable:
            self._wanted.set()
            raise TokenRefused("its signing key is being made")
        key = usable[-1]
        issued_s = now_us // US_PER_SECOND
        claims = {
            "iss": self.issuer,
            "sub": f"tocsin:{credential.namespace}:{credential.name}",
            "aud": credential.audience,
            "iat": issued_s,
            "exp": issued_s + credential.lifetime_us // US_PER_SECOND,
            "jti": secrets.token_urlsafe(16),
        }
        return jwt.encode({"alg": _ALGORITHM, "kid": key.kid}, claims, self._private[key.kid])

    async def published(self) -> list[dict[str, str]]:
        """The public keys as a JWK set has them: those of the past day, the present one and the next. Anyone may ask: the
        store is asked once for all who ask meanwhile, and not again within a second once there is a key. Raises StoreError,
        TimeoutError."""
        # The first key signs at once, each next one a day after it was stored: only that there is none must not be old.
        if not self._keys or self._clock.boottime_us() - self._read_at >= _FRESH_US:
            if self._shared is None:
                self._shared = asyncio.get_running_loop().create_task(self._read())
                self._shared.add_done_callback(self._was_shared)
            await asyncio.shield(self._shared)
        return self.present

    def _was_shared(self, read: asyncio.Task[None]) -> None:
        self._shared = None
        if not read.cancelled():
            # Those who asked may have gone; nobody misses the error then.
            read.exception()

    @property
    def present(self) -> list[dict[str, str]]:
        """The same, as they were last read."""
        return [{**each.public, "kid": each.kid, "use": "sig", "alg": _ALGORITHM} for each in self._keys]

    async def run(self) -> None:
        """Reads the keys now and then, and makes the next one when it is time, once there is one or one is wanted."""
        while True:
            try:
                await self.turn()
            except (StoreError, TimeoutError) as error:
                _log.warning("signing keys not read", error=str(error) or type(error).__name__)
                # A key that is wanted stays so until the store answers: it must not end this pause.
                await asyncio.sleep(_RETRY_S)
                continue
            # The first one of a node whose clock is ahead signs in a moment.
            pause_s = _RETRY_S if self._keys and not self._signs else _INTERVAL_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wanted.wait()

    async def turn(self, *, wanted: bool = False) -> None:
        """Reads the keys, and makes the next one, or removes former ones, where it is time, if there is one or one is wanted.
        Raises StoreError, TimeoutError."""
        await self._read()
        if self._keys or wanted or self._wanted.is_set():
            self._wanted.clear()
            await self._succeed(self._clock.now_us())

    async def _read(self) -> None:
        """Takes over the keys as they are stored. Raises StoreError, TimeoutError."""
        async with asyncio.timeout(self._timeout_s), self._reading:
            began_at = self._clock.boottime_us()
            (version,) = await self._records.records_versions(SIGNING_KEYS)
            if version != self._version:
                self._keys, self._version = await signing_keys(self._records), version
            self._read_at = began_at
        known = {each.kid for each in self._keys}
        self._private = {kid: key for kid, key in self._private.items() if kid in known}
        self._unusable = {kid: reason for kid, reason in self._unusable.items() if kid in known}
        signed, now_us = self._signs, self._clock.now_us()
        self._signs = any(each.signs_from <= now_us for each in self._usable(self._keys))
        if self._signs and not signed:
            self.ready()

    async def _succeed(self, now_us: int) -> None:
        """Makes the next key, and removes the former one, where it is time. Any node may: a key's number is taken once."""
        keys = self._keys
        usable = self._usable(keys)
        for kid in self._unusable.keys() - self._logged:
            _log.warning("signing key not usable", kid=kid, reason=self._unusable[kid])
        self._logged = set(self._unusable)
        made = None
        if not usable:
            made = await self._make(now_us)
        elif usable[-1].signs_from + SIGNS_US - PUBLISHED_BEFORE_US <= now_us:
            made = await self._make(max(now_us + PUBLISHED_BEFORE_US, keys[-1].signs_from))
        if made is not None:
            _log.info("signing key made", kid=made.kid, number=made.number)
        # What can't sign takes no key's place.
        taken = max((each.number for each in usable if _alone_from(each, keys) <= now_us), default=0)
        for former in keys:
            if former.number < taken:
                async with asyncio.timeout(self._timeout_s):
                    await delete_signing_key(self._records, former.number)
        await self._read()

    async def listed(self, now_us: int) -> list[tuple[SigningKey, str]]:
        """The keys, each with its state: it `signs`, is a `former` one or the `next`, or is `unusable`. Raises StoreError,
        TimeoutError."""
        await self._read()
        usable = self._usable(self._keys)
        present = max((each.number for each in usable if each.signs_from <= now_us), default=0)

        def state(key: SigningKey) -> str:
            if key not in usable:
                return "unusable"
            return "signs" if key.number == present else "former" if key.number < present else "next"

        return [(key, state(key)) for key in self._keys]

    async def replace(self, now_us: int) -> SigningKey | None:
        """Makes a key that signs from now on, and returns it; None if a node has made another one meanwhile. Nodes sign with
        it within a minute, and remove all others once their tokens have expired. Raises StoreError, TimeoutError."""
        await self._read()
        return await self._make(now_us)

    async def _make(self, signs_from: int) -> SigningKey | None:
        """Makes another key, unless another node does meanwhile. A number without a key is that of a damaged one."""
        known = self._keys[-1].number if self._keys else 0
        for number in range(known + 1, known + 1 + _DAMAGED_MAX):
            made = _new_key(number, signs_from, self._seals)
            async with asyncio.timeout(self._timeout_s):
                if await put_signing_key(self._records, made):
                    return made
            await self._read()
            if self._keys and self._keys[-1].number >= number:
                return None
        return None

    def _usable(self, keys: Iterable[SigningKey]) -> list[SigningKey]:
        """Those of the keys whose private parts this node can open."""
        from joserfc.jwk import ECKey

        found = []
        for key in keys:
            if key.kid not in self._private:
                try:
                    opened = self._seals.open(key.private, key.seal_context)
                except SealBroken as error:
                    self._unusable.setdefault(key.kid, str(error))
                    continue
                self._private[key.kid] = ECKey.import_key(msgspec.json.decode(opened))
            found.append(key)
        return found


def _alone_from(key: SigningKey, keys: Iterable[SigningKey]) -> int:
    """From when on nothing needs the keys before this one: receivers may keep for a day what they have read, unless one of
    these was to be replaced at once."""
    early = any(each.number < key.number and key.signs_from < each.signs_from + SIGNS_US for each in keys)
    return key.signs_from + (_REPLACED_KEPT_US if early else KEPT_AFTER_US)


def _new_key(number: int, signs_from: int, seals: Seals) -> SigningKey:
    from joserfc.jwk import ECKey

    made = ECKey.generate_key("P-256")
    public = {name: str(value) for name, value in made.as_dict(private=False).items()}
    unsealed = SigningKey(number, made.thumbprint(), signs_from, public, "")
    private = msgspec.json.encode(made.as_dict(private=True)).decode()
    return msgspec.structs.replace(unsealed, private=seals.seal(private, unsealed.seal_context))
