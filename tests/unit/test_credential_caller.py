"""What gives requests their credentials: which go where, and what is not sent."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import trustme
from tests.support.patience import PATIENCE_S

from tocsin.http_client.target import parse_url
from tocsin.model.answer import Failed, NoCredential, NoResponse, NotSent, Outcome, Response, judge
from tocsin.model.credential import Credential, origin_of, shown_host
from tocsin.model.credential_type import CredentialType
from tocsin.ports.http import Exchange, Identity, Invocation, Reply, Request, Result, Tls
from tocsin.ports.seals import SealBroken
from tocsin.targets import fetches, identities, tls
from tocsin.targets.credentials import CredentialCaller
from tocsin.testing.clock import FakeClock

MINUTE_US = 60_000_000
URL = "https://api.example.com/x"
CA = trustme.CA().cert_pem.bytes().decode()


def destination(url: str) -> str:
    return parse_url(url).origin.destination


class Inner:
    """Records what is sent, and answers it with `status`; requests for tokens by `tokens`, of which the last one stays."""

    def __init__(self) -> None:
        self.sent: list[Invocation] = []
        self.asked: list[Request] = []
        self.status = 200
        self.tokens: list[tuple[int, dict[str, Any]]] = []

    def destination(self, url: str) -> str:
        return destination(url)

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        self.sent.append(invocation)
        asyncio.get_running_loop().call_soon(done, Exchange(Response(self.status), 1, 1))

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        self.asked.append(request)
        status, answer = self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
        reply = Reply(status, (), msgspec.json.encode(answer), False)
        asyncio.get_running_loop().call_soon(done, Result(reply, 1, 1))

    async def open(self, url: str, tls: Tls | None, timeout_us: int, stays_us: int = 0) -> NoResponse | NotSent | None:
        return None

    async def close(self) -> None:
        """Nothing is open."""


class Silent(Inner):
    """Answers no request for a token of `hosts`, which are all if there are none. `busy` is set when there are as many as an
    endpoint gets at once, or `count`."""

    def __init__(self, *hosts: str, count: int = fetches.ENDPOINT_FETCHES_MAX) -> None:
        super().__init__()
        self.busy, self._hosts, self._count = asyncio.Event(), hosts, count
        self.tokens = [(200, {"access_token": "one"})]

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        if self._hosts and not any(host in request.url for host in self._hosts):
            super().send(request, done)
            return
        self.asked.append(request)
        if len(self.asked) == self._count:
            self.busy.set()


class Late(Inner):
    """Keeps requests for tokens until they are answered. `was_asked` is set at each."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked = asyncio.Event()
        self._unanswered: list[Callable[[Result], None]] = []

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        self._unanswered.append(done)
        self.was_asked.set()

    async def answer(self, token: str) -> None:
        """Answers the next request."""
        await asyncio.wait_for(self.was_asked.wait(), PATIENCE_S)
        self.was_asked.clear()
        body = msgspec.json.encode({"access_token": token, "expires_in": 100})
        self._unanswered.pop(0)(Result(Reply(200, (), body, False), 1, 1))


class Sealed:
    """Opens what begins with its mark, in its context only."""

    def seal(self, text: str, context: str) -> str:
        return f"{context}|{text}"

    def open(self, sealed: str, context: str) -> str:
        of, _, text = sealed.rpartition("|")
        if of != context:
            raise SealBroken(f"the secret of {context} can't be opened")
        return text


class Place:
    """A caller with its parts. Leaving it closes the caller."""

    def __init__(self, inner: Inner | None = None) -> None:
        self.inner, self.clock, self.woken = inner or Inner(), FakeClock(), asyncio.Event()
        self.caller = CredentialCaller(self.inner, self.inner, self.clock, Sealed())
        self.caller.ready = self.woken.set

    async def __aenter__(self) -> Place:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.caller.close()

    def learn(self, *credentials: Credential) -> None:
        named: dict[str, dict[str, Credential]] = {}
        for each in credentials:
            named.setdefault(each.namespace, {})[each.name] = each
        self.caller.learn(named)

    async def token(self) -> None:
        """Returns when the token that is missing has arrived."""
        # That credentials were learned is reported first.
        await asyncio.sleep(0)
        self.woken.clear()
        await asyncio.wait_for(self.woken.wait(), PATIENCE_S)

    async def call(self, name: str, url: str = URL, **more: Any) -> Exchange:
        answer: asyncio.Future[Exchange] = asyncio.get_running_loop().create_future()
        invocation = Invocation(
            "orders", "t", 0, 0, 1, msgspec.Raw(b"null"), "msg_1", url, "POST", None, MINUTE_US, (), None,
            credential=name, **more,
        )  # fmt: skip
        self.caller.invoke(invocation, answer.set_result)
        return await answer


def credential(
    kind: CredentialType = CredentialType.BEARER, secret: str = "the-token", name: str = "api", **more: Any
) -> Credential:
    origins = more.pop("origins", ("https://api.example.com:443",))
    known = Credential("orders", name, kind, 0, 0, origins, **more)
    return msgspec.structs.replace(known, secret=Sealed().seal(secret, known.seal_context))


def is_retried(outcome: Outcome) -> bool:
    """Whether the engine makes another attempt after this failed one."""
    assert isinstance(outcome, Response) and outcome.status == 401
    verdict = judge(outcome, now_us=0, retry_after_us_max=0, instant_us_max=0, payload_bytes_max=0, payload_depth_max=0)
    assert isinstance(verdict, Failed) and verdict.error.partition(":")[0] == "HTTP_401"
    return not verdict.final


def oauth2(**more: Any) -> Credential:
    return credential(CredentialType.OAUTH2, "s3cret", token_url="https://login.example.com/t", client_id="me", **more)


async def test_request_has_the_credential_and_what_it_repeats_is_known_as_secret() -> None:
    async with Place() as place:
        place.learn(credential())
        assert (await place.call("api")).secrets == ("the-token",)
        assert place.inner.sent[0].identity == Identity("Bearer the-token")
        await place.call("")
        assert place.inner.sent[1].identity is None
        place.learn(credential(CredentialType.BASIC, "pass", username="me"))
        await place.call("api")
        pair = base64.b64encode(b"me:pass").decode()
        assert place.inner.sent[2].identity == Identity(f"Basic {pair}")


@pytest.mark.parametrize(
    "url",
    ["http://api.example.com/", "https://api.example.com:8443/", "https://xapi.example.com/", "http://127.0.0.1/"],
)
async def test_credential_goes_to_no_other_origin(url: str) -> None:
    async with Place() as place:
        place.learn(credential())
        outcome = (await place.call("api", url)).outcome
        assert isinstance(outcome, NoCredential) and "may not go" in outcome.detail
        assert place.inner.sent == [] and place.caller.obstacle("orders", "api", destination(url)) is not None
        assert place.caller.obstacle("orders", "api", destination(URL)) is None


async def test_what_is_missing_or_sealed_for_another_is_not_sent() -> None:
    async with Place() as place:
        outcome = (await place.call("api")).outcome
        assert isinstance(outcome, NoCredential) and outcome.detail == "credential api: it does not exist"
        place.learn(msgspec.structs.replace(credential(), secret="credential:other/api|the-token"))
        outcome = (await place.call("api")).outcome
        assert isinstance(outcome, NoCredential) and "can't be opened" in outcome.detail
        assert place.inner.sent == []


async def test_nothing_is_sent_before_the_first_token_and_one_request_fetches_it() -> None:
    async with Place() as place:
        place.inner.tokens = [(200, {"access_token": "one", "token_type": "Bearer", "expires_in": 3600})]
        place.learn(oauth2())
        outcome = (await place.call("api")).outcome
        assert isinstance(outcome, NoCredential) and outcome.destination == "https://api.example.com:443"
        await place.token()
        await place.call("api")
        await place.call("api")
        assert [each.identity for each in place.inner.sent] == [Identity("Bearer one")] * 2
        assert len(place.inner.asked) == 1
        pair = base64.b64encode(b"me:s3cret").decode()
        assert dict(place.inner.asked[0].headers)["authorization"] == f"Basic {pair}"


async def test_token_that_has_expired_is_not_sent() -> None:
    async with Place() as place:
        place.inner.tokens = [(200, {"access_token": "one", "expires_in": 100})]
        place.learn(oauth2())
        await place.token()
        place.clock.advance(90_000_000 - 1)
        assert isinstance((await place.call("api")).outcome, Response)
        place.clock.advance(1)
        assert isinstance((await place.call("api")).outcome, NoCredential)


async def test_those_who_wait_are_notified_of_a_token_that_was_asked_for_before_the_former_one_expired() -> None:
    inner = Late()
    async with Place(inner) as place:
        place.learn(oauth2())
        await inner.answer("one")
        await place.token()
        place.clock.advance(MINUTE_US)
        # It has the token renewed.
        inner.status = 401
        assert isinstance((await place.call("api")).outcome, Response)
        await asyncio.wait_for(inner.was_asked.wait(), PATIENCE_S)
        place.clock.advance(MINUTE_US)
        assert isinstance((await place.call("api")).outcome, NoCredential)
        place.woken.clear()
        await inner.answer("two")
        await asyncio.wait_for(place.woken.wait(), PATIENCE_S)
        await place.call("api")
        assert inner.sent[-1].identity == Identity("Bearer two")


async def test_a_401_to_a_token_that_may_be_stale_is_retried_with_the_next_one() -> None:
    inner, other = Late(), "https://other.example.com/"
    async with Place(inner) as place:
        place.learn(oauth2(origins=(destination(URL), destination(other))))
        await inner.answer("one")
        await place.token()
        inner.status = 401
        # It has just been issued, so that another one would be refused likewise.
        assert not is_retried((await place.call("api")).outcome)
        place.clock.advance(MINUTE_US)
        # Both were under way when it was revoked.
        refused = await asyncio.gather(place.call("api"), place.call("api"))
        assert all(is_retried(each.outcome) for each in refused)
        assert isinstance((await place.call("api")).outcome, NoCredential)
        inner.status = 200
        assert isinstance((await place.call("api", other)).outcome, Response)
        assert place.caller.without_token == 1
        await inner.answer("two")
        await place.token()
        assert place.caller.without_token == 0
        assert isinstance((await place.call("api")).outcome, Response)
        assert inner.sent[-1].identity == Identity("Bearer two")


async def test_who_refuses_one_token_after_the_other_ends_timers() -> None:
    inner = Late()
    async with Place(inner) as place:
        place.learn(oauth2())
        await inner.answer("one")
        await place.token()
        inner.status = 401
        retried = []
        for _ in range(2):
            place.clock.advance(MINUTE_US)
            retried.append(is_retried((await place.call("api")).outcome))
            # Endpoints may issue the same one again, which is sent again.
            await inner.answer("one")
            for _ in range(50):
                await asyncio.sleep(0)
        assert retried == [True, False]
        inner.status = 500
        await place.call("api")
        inner.status = 401
        place.clock.advance(MINUTE_US)
        assert not is_retried((await place.call("api")).outcome)
        # Once it has taken a token, another may have been revoked.
        inner.status = 404
        await place.call("api")
        inner.status = 401
        assert is_retried((await place.call("api")).outcome)


async def test_a_401_to_a_token_that_was_replaced_since_is_retried() -> None:
    inner = Late()
    async with Place(inner) as place:
        place.learn(oauth2())
        await inner.answer("one")
        await place.token()
        found = place.caller.identify("orders", "api", destination(URL))
        assert not isinstance(found, str)
        place.clock.advance(MINUTE_US)
        inner.status = 401
        await place.call("api")
        await inner.answer("two")
        await place.token()
        assert found.answered(401)


async def test_a_401_to_a_secret_is_final() -> None:
    async with Place() as place:
        place.learn(credential())
        place.inner.status = 401
        place.clock.advance(MINUTE_US)
        assert not is_retried((await place.call("api")).outcome)


async def test_an_error_of_one_who_waits_keeps_the_token_from_no_other() -> None:
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))

    def fails() -> None:
        raise RuntimeError("a defect")

    async with Place() as place:
        place.inner.tokens = [(200, {"access_token": "one"})]
        notified = asyncio.Event()
        place.learn(oauth2())
        place.caller.ready = fails
        place.caller.ready_for_calls = {fails: None, notified.set: None}
        await asyncio.wait_for(notified.wait(), PATIENCE_S)
        assert [str(each["exception"]) for each in errors[-2:]] == ["a defect"] * 2
        # The token is kept valid as before.
        assert place.caller._held["orders", "api"]._keeping.done() is False  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("status", "answer", "reason"),
    [
        (401, {"error": "invalid_client", "error_description": "s3cret"}, "HTTP 401 (invalid_client)"),
        (500, {"error": "Me:s3cret"}, "HTTP 500"),
        (200, {"token": "x"}, "has no access_token"),
        (200, {"access_token": "a b"}, "visible ASCII"),
        (200, {"access_token": "a\r\nx: y"}, "visible ASCII"),
        (200, {"access_token": "a", "token_type": "mac"}, "not Bearer"),
        (200, {"access_token": "a", "expires_in": 0}, "less than a second"),
        (302, {}, "HTTP 302"),
    ],
)
async def test_answers_without_a_token_are_reasons_without_secrets(
    status: int, answer: dict[str, Any], reason: str
) -> None:
    async with Place() as place:
        place.inner.tokens = [(status, answer)]
        tested = await place.caller.test(oauth2(), None)
        assert not tested.ok and reason in tested.steps[0].detail
        assert "s3cret" not in str(tested)


async def test_change_of_the_secret_alone_keeps_the_token_until_the_next_one_is_there() -> None:
    async with Place() as place:
        place.inner.tokens = [(200, {"access_token": "one"})]
        place.learn(oauth2())
        await place.token()
        place.inner.tokens = [(503, {})]
        changed = msgspec.structs.replace(oauth2(), secret=Sealed().seal("next", oauth2().seal_context), version=2)
        place.learn(changed)
        assert isinstance((await place.call("api")).outcome, Response)
        place.learn(msgspec.structs.replace(changed, client_id="another", version=3))
        assert isinstance((await place.call("api")).outcome, NoCredential)


async def test_refused_token_is_renewed_once_and_a_failure_keeps_its_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "_PAUSE_US", 10**12)
    monkeypatch.setattr(identities, "_PAUSE_US_MAX", 10**12)
    async with Place() as place:
        place.inner.tokens = [(200, {"access_token": "one"})]
        place.learn(oauth2())
        await place.token()
        place.inner.tokens = [(503, {})]
        place.clock.advance(MINUTE_US)
        found = place.caller.identify("orders", "api", destination(URL))
        assert not isinstance(found, str)

        async def refused() -> int:
            """A receiver's 401, and how often a token has been asked for when all that follows from it has happened."""
            assert found.answered(401)
            for _ in range(50):
                await asyncio.sleep(0)
            return len(place.inner.asked)

        assert [await refused() for _ in range(3)] == [2, 2, 2]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """The TLS made for token endpoints and of certificates: the name of its credential, and whether the event loop made
    it."""
    found: list[tuple[str, bool]] = []

    def tls_of(known: Credential, secret: str, *, to_issuer: bool = False) -> Tls | None:
        if to_issuer or known.type is CredentialType.MTLS:
            found.append((known.name, threading.current_thread() is threading.main_thread()))
        return tls.tls_of(known, secret, to_issuer=to_issuer)

    monkeypatch.setattr(identities, "tls_of", tls_of)
    return found


async def test_authorities_of_a_token_endpoint_are_read_once_and_not_on_the_event_loop(
    made: list[tuple[str, bool]],
) -> None:
    inner = Inner()
    inner.tokens = [(200, {"access_token": "one"})]
    held = identities.hold(
        oauth2(ca=CA), identities.Tools(inner, FakeClock(), Sealed(), None, lambda: None), keeps=False
    )
    for _ in range(2):
        assert isinstance(await held.renewed(), identities.Ready)
    one, other = (request.tls for request in inner.asked)
    assert one is not None and one is other and made == [("api", False)]


async def test_authorities_are_read_for_as_many_token_endpoints_as_are_asked_at_once(
    made: list[tuple[str, bool]],
) -> None:
    inner = Silent()
    async with Place(inner) as place:
        place.learn(*(oauth2(ca=CA, name=f"api-{number}") for number in range(2 * fetches.ENDPOINT_FETCHES_MAX)))
        await asyncio.wait_for(inner.busy.wait(), PATIENCE_S)
        assert len(made) == fetches.ENDPOINT_FETCHES_MAX


async def test_a_token_endpoint_that_does_not_answer_delays_no_other() -> None:
    inner = Silent("login.example.com")
    async with Place(inner) as place:
        hung = [oauth2(name=f"api-{number}") for number in range(2 * fetches.ENDPOINT_FETCHES_MAX)]
        place.learn(*hung, msgspec.structs.replace(oauth2(name="well"), token_url="https://other.example.com/t"))
        await place.token()
        await asyncio.wait_for(inner.busy.wait(), PATIENCE_S)
        assert isinstance((await place.call("well")).outcome, Response)


async def test_a_namespace_with_many_token_endpoints_that_do_not_answer_delays_no_other() -> None:
    inner = Silent(".slow.example", count=fetches.NAMESPACE_FETCHES_MAX)
    async with Place(inner) as place:
        hung = [
            msgspec.structs.replace(oauth2(name=f"api-{number}"), token_url=f"https://host-{number}.slow.example/t")
            for number in range(fetches.FETCHES_MAX)
        ]
        other = msgspec.structs.replace(oauth2(name="well"), namespace="other")
        well = msgspec.structs.replace(other, secret=Sealed().seal("s3cret", other.seal_context))
        place.learn(*hung, well)
        await place.token()
        await asyncio.wait_for(inner.busy.wait(), PATIENCE_S)
        assert place.caller.obstacle("other", "well", destination(URL)) is None
        assert len(inner.asked) == fetches.NAMESPACE_FETCHES_MAX + 1


def certified(**more: Any) -> Credential:
    made = trustme.CA().issue_cert("api.example.com")
    chain = made.cert_chain_pems[0].bytes().decode()
    return credential(CredentialType.MTLS, made.private_key_pem.bytes().decode(), certificate=chain, **more)


async def test_certificates_are_read_once_and_not_on_the_event_loop(made: list[tuple[str, bool]]) -> None:
    known = certified()
    async with Place() as place:
        place.learn(known)
        waits = (await place.call("api")).outcome
        assert isinstance(waits, NoCredential) and waits.detail == "credential api: its certificates are being read"
        await place.token()
        assert isinstance((await place.call("api")).outcome, Response)
        # What secures connections is the same: nothing waits.
        place.learn(msgspec.structs.replace(known, description="The API", version=2))
        assert isinstance((await place.call("api")).outcome, Response)
        one, other = (sent.identity and sent.identity.tls for sent in place.inner.sent)
        assert one is not None and one is other
        assert made == [("api", False)]


async def test_certificates_that_cannot_be_read_are_the_reason_why_requests_wait() -> None:
    async with Place() as place:
        place.learn(msgspec.structs.replace(certified(), certificate="no certificate"))
        await place.token()
        waits = (await place.call("api")).outcome
        assert isinstance(waits, NoCredential) and waits.detail.startswith("credential api: certificate does not fit")


async def test_certificates_that_this_node_could_not_read_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when it has no file descriptors left. Authorities of a token endpoint likewise."""
    monkeypatch.setattr(identities, "_PAUSE_US", 1_000)
    failures = [OSError(24, "Too many open files") for _ in range(3)]

    def tls_of(known: Credential, secret: str, *, to_issuer: bool = False) -> Tls | None:
        if failures:
            raise failures.pop()
        return tls.tls_of(known, secret, to_issuer=to_issuer)

    monkeypatch.setattr(identities, "tls_of", tls_of)
    async with Place() as place:
        tools = identities.Tools(place.inner, place.clock, Sealed(), None, place.caller.woken)
        held = identities.hold(certified(), tools)
        assert await held.renewed() == "this node could not read it: Too many open files"
        await place.token()
        assert failures == [] and isinstance(held.ready(), identities.Ready)
        held.close()

        failures.append(OSError(24, "Too many open files"))
        place.inner.tokens = [(200, {"access_token": "one"})]
        place.learn(oauth2(ca=CA))
        while place.caller.obstacle("orders", "api", destination(URL)) is not None:
            await place.token()
        assert failures == []


async def test_credential_that_is_created_again_shares_no_connection_with_the_former() -> None:
    async def key(place: Place, *known: Credential) -> str:
        place.learn()
        place.learn(*known)
        await place.token()
        assert isinstance((await place.call("api")).outcome, Response)
        identity = place.inner.sent[-1].identity
        assert identity is not None and identity.tls is not None
        return identity.tls.key

    one = certified()
    known = [one, certified(), msgspec.structs.replace(one, ca=CA)]
    assert {each.version for each in known} == {1}
    async with Place() as place:
        keys = [await key(place, each) for each in known]
        assert len(set(keys)) == 3
        assert await key(place, one) == keys[0]


@pytest.mark.parametrize(
    "change",
    [{"origins": ("https://evil.example:443",)}, {"origins": ()}, {"ca": CA}],
    ids=["hosts", "here", "ca"],
)
async def test_change_that_leads_elsewhere_does_not_take_the_token_along(change: dict[str, Any]) -> None:
    async with Place() as place:
        place.inner.tokens = [(200, {"access_token": "one"})]
        place.learn(oauth2())
        await place.token()
        place.inner.tokens = [(401, {"error": "invalid_client"})]
        wrong = Sealed().seal("wrong", oauth2().seal_context)
        changed = msgspec.structs.replace(oauth2(), secret=wrong, version=2, **change)
        place.learn(changed)
        url = f"{changed.origins[0]}/" if changed.origins else "http://127.0.0.1/"
        assert isinstance((await place.call("api", url)).outcome, NoCredential)
        assert place.inner.sent == []


@pytest.mark.parametrize(
    ("host", "origin", "shown"),
    [
        ("api.example.com", "https://api.example.com:443", "api.example.com"),
        ("https://API.example.com", "https://api.example.com:443", "api.example.com"),
        ("api.example.com:8443", "https://api.example.com:8443", "api.example.com:8443"),
        ("http://api.internal", "http://api.internal:80", "http://api.internal"),
        ("[::1]:9000", "https://[::1]:9000", "[::1]:9000"),
    ],
)
def test_hosts_are_origins(host: str, origin: str, shown: str) -> None:
    assert origin_of(host, destination) == origin
    assert shown_host(origin) == shown and origin_of(shown, destination) == origin


def test_only_this_machine_is_meant_without_hosts() -> None:
    here = msgspec.structs.replace(credential(), origins=())
    for url in (
        "http://127.0.0.1:9000/",
        "https://127.8.8.8/",
        "http://[::1]:1/",
        "http://localhost/",
        "http://a.localhost/",
    ):
        assert here.goes_to(destination(url)), url
    for url in ("http://127.0.0.1.example.com/", "http://localhost.example.com/", "http://10.0.0.1/", "http://[::2]/"):
        assert not here.goes_to(destination(url)), url
