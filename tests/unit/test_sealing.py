"""Sealed texts: what opens them, what is refused, and which parts of requests they replace."""

from __future__ import annotations

import re

import pytest

from tocsin.model.errors import InvalidInput
from tocsin.model.hooks import Hook, Hooks
from tocsin.model.redaction import REDACTED, is_secret, redact_headers, redact_url
from tocsin.model.sealed import headers_opened, hooks_opened, hooks_sealed, seal_timer, url_opened, url_sealed
from tocsin.model.sealed_text import is_sealed, key_ids_in
from tocsin.model.secrets import SigningSecrets, new_secret
from tocsin.model.timer import Timer
from tocsin.model.validation import InputLimits, InputRules
from tocsin.ports.seals import NoSeals, SealBroken, opener, sealer, stored_like
from tocsin.sealing import BadKeys, KeySeals, key_id, parse_keys
from tocsin.service_calls.api.validation import CallRules, Submission
from tocsin.service_calls.limits import AgentLimits

FIRST, SECOND = bytes(range(32)), bytes(range(32, 64))
RULES = InputRules(InputLimits(), lambda url: None)


@pytest.mark.parametrize("text", ["", "x", "whsec_abc", "ü — 字", "a" * 5_000, "tsl1.0123456789ab." + "A" * 40])
def test_a_text_is_opened_where_it_was_sealed_and_nowhere_else(text: str) -> None:
    seals = KeySeals([FIRST])
    sealed = seals.seal(text, "namespace:orders")
    assert is_sealed(sealed)
    assert seals.open(sealed, "namespace:orders") == text
    assert KeySeals([FIRST]).open(sealed, "namespace:orders") == text
    for moved in ("namespace:other", "tenant:orders", "namespace:orders\0"):
        with pytest.raises(SealBroken, match="moved"):
            seals.open(sealed, moved)


def test_equal_secrets_are_equal_in_one_context_and_unlike_in_another() -> None:
    seals = KeySeals([FIRST])
    assert seals.seal("secret", "namespace:a") == seals.seal("secret", "namespace:a")
    others = {seals.seal("secret", "namespace:b"), seals.seal("secret2", "namespace:a")}
    others.add(KeySeals([SECOND]).seal("secret", "namespace:a"))
    assert len(others | {seals.seal("secret", "namespace:a")}) == 4


def test_every_changed_character_is_noticed() -> None:
    seals = KeySeals([FIRST])
    sealed = seals.seal("secret", "namespace:a")
    for place in range(len("tsl1.") + 13, len(sealed)):
        other = "A" if sealed[place] != "A" else "Q"
        with pytest.raises(SealBroken):
            seals.open(sealed[:place] + other + sealed[place + 1 :], "namespace:a")


def test_the_first_key_seals_and_all_open() -> None:
    former = KeySeals([FIRST]).seal("secret", "namespace:a")
    both = KeySeals([SECOND, FIRST])
    assert both.open(former, "namespace:a") == "secret"
    assert key_ids_in(both.seal("secret", "namespace:a")) == {key_id(SECOND)}
    for seals in (KeySeals([SECOND]), NoSeals()):
        with pytest.raises(SealBroken, match=rf"key {key_id(FIRST)}.*secrets\.key_file") as refused:
            seals.open(former, "namespace:a")
        assert "secret_" not in str(refused.value)


def test_texts_in_clear_stay_as_they_are() -> None:
    for seals in (KeySeals([FIRST]), NoSeals()):
        assert seals.open("secret", "namespace:a") == "secret"
        assert seals.open("tsl1.", "namespace:a") == "tsl1."
    assert NoSeals().seal("secret", "namespace:a") == "secret"


def test_only_what_is_a_secret_is_sealed_and_all_of_it_is_shown_redacted() -> None:
    seals = KeySeals([FIRST])
    headers = {"Authorization": "Bearer abc", "x-plain": "plain", "x-other": "Basic abc", "x-token": REDACTED}
    url, hook = (
        "https://example.com/a?order=7&token=abc&code=&api%5Fkey=x%20y#z",
        Hook("https://h.example/?sig=a", headers),
    )
    timer = Timer("orders", "a", 0, url, 0, 0, headers=headers, hooks=Hooks(failure=hook))
    seal_timer(timer, sealer(seals, "orders"))
    assert timer.headers is not None
    assert [is_sealed(value) for value in timer.headers.values()] == [True, False, True, False]
    assert timer.headers["x-token"] == REDACTED
    assert timer.url.startswith("https://example.com/a?order=7&token=tsl1.")
    assert ("code=&" in timer.url, "#" in timer.url) == (True, False)
    assert redact_url(timer.url) == redact_url(url)
    assert redact_headers(timer.headers) == redact_headers(headers)
    assert timer.hooks is not None
    assert timer.hooks.failure is not None
    assert "sig=tsl1." in timer.hooks.failure.url
    unseal = opener(seals, "orders")
    assert url_opened(timer.url, unseal) == url.partition("#")[0]
    assert headers_opened(timer.headers, unseal) == headers
    # Another form than a secret's name or value has a sealed one as well.
    assert is_secret("x-other", timer.headers["x-other"])


def test_a_secret_is_sealed_whole_whatever_is_in_it() -> None:
    unseal, seal = opener(KeySeals([FIRST]), "orders"), sealer(KeySeals([FIRST]), "orders")
    for url in ('https://example.com/?token=abc">def&a=b', "https://example.com/?a=b;token=ab;cd"):
        sealed = url_sealed(url, seal)
        assert re.search(r"token=tsl1[.\w-]+(&|$)", sealed) is not None
        assert redact_url(sealed) == redact_url(url)
        assert url_opened(sealed, unseal) == url


def test_a_redacted_url_stays_for_what_is_stored() -> None:
    url = f"https://example.com/?token={REDACTED}&key=abc"
    assert url_sealed(url, sealer(KeySeals([FIRST]), "orders")) == url


def test_requests_with_texts_that_look_sealed_are_refused() -> None:
    sealed = KeySeals([FIRST]).seal("secret", "namespace:orders")
    errors = RULES.headers({"x-plain": sealed, "Authorization": f"Bearer {sealed}"}, "headers")
    assert [error.path for error in errors] == ["headers.x-plain", "headers.Authorization"]
    assert "send the secret itself" in errors[0].reason
    assert "send the secret itself" in (RULES.url(f"https://example.com/?order={sealed}") or "")
    assert RULES.url("https://example.com/tsl1.html?token=tsl1.x") is None


def test_service_calls_with_headers_that_look_sealed_are_refused() -> None:
    sealed = KeySeals([FIRST]).seal("secret", "tenant:x")
    rules = CallRules(AgentLimits(), RULES, lambda method, url, headers, body: [])
    spec = ("call", "POST", "https://example.com/", {"x-plain": sealed}, None, None, [], None, None)
    with pytest.raises(InvalidInput) as refused:
        rules.submission("01890a5d-ac96-774b-bcce-b302099a8057", Submission(*spec), 0, lambda: "")
    assert [(error.path, "send the secret itself" in error.reason) for error in refused.value.errors] == [
        ("requestSpec.headers", True)
    ]


def test_a_signing_secret_stays_as_it_is_stored_under_a_former_key() -> None:
    secret, former = new_secret(), KeySeals([FIRST])
    known = SigningSecrets(former.seal(secret, "namespace:a"))
    both = KeySeals([SECOND, FIRST])
    seal, unseal = sealer(both, "a"), opener(both, "a")
    assert stored_like(known, secret, seal, unseal) == known.secret
    fresh = stored_like(known, new_secret(), seal, unseal)
    assert key_ids_in(fresh) == {key_id(SECOND)}
    assert known.opened(unseal) == SigningSecrets(secret)
    # Without its key it can't be compared: the new one replaces it.
    alone = KeySeals([SECOND])
    assert stored_like(known, secret, sealer(alone, "a"), opener(alone, "a")) != known.secret


def test_keys_are_read_from_text() -> None:
    text = f"# comment {'00' * 32}\n{FIRST.hex()}  # the first\n\nICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=\n"
    assert parse_keys(text) == [FIRST, SECOND]
    for bad, reason in (("", "has no key"), ("# only", "has no key"), (f"{FIRST.hex()} secret-word", "number 2")):
        with pytest.raises(BadKeys, match=reason) as refused:
            parse_keys(bad)
        assert "secret-word" not in str(refused.value)


def test_what_else_a_hook_has_stays() -> None:
    hooks: dict[str, Hook | None] = {"failure": Hook("https://x.example/?token=t", {"x-api-key": "k"}, "billing")}
    seals = KeySeals([FIRST])
    sealed = hooks_sealed(hooks, sealer(seals, "a"))
    assert sealed != hooks
    assert hooks_opened(sealed, opener(seals, "a")) == hooks
