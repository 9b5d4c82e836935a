"""What operators set of single sign-on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tocsin.model.access import Role
from tocsin.model.namespace import NAME
from tocsin.model.setting import setting

_CLAIM = re.compile(r"[^\s.]+(\.[^\s.]+)*")


class Grant(NamedTuple):
    """What the members of a group may do: on these namespaces, or without any on the whole service."""

    group: str
    role: Role
    namespaces: tuple[str, ...]


def parse_grant(entry: str) -> Grant:
    """Of `group=role` or `group=role:namespace,namespace`. Raises ValueError. A group's name may contain `=`."""
    group, equals, allowed = entry.rpartition("=")
    name, colon, listed = allowed.partition(":")
    if not equals or not group.strip() or name not in [role.value for role in Role]:
        raise ValueError(
            f"{entry!r} is not a grant; write group=read, group=write or group=admin, or on some namespaces only "
            "group=write:orders,bills"
        )
    namespaces = tuple(each.strip() for each in listed.split(",")) if colon else ()
    for namespace in namespaces:
        if not NAME.match(namespace):
            raise ValueError(f"{entry!r}: {namespace!r} is not the name of a namespace")
    return Grant(group.strip(), Role(name), namespaces)


def grants(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Grants, each as it is written."""
    for entry in entries:
        parse_grant(entry)
    return entries


def issuer_address(value: object) -> str:
    """The URL of an issuer: HTTPS, or HTTP on this machine, without query or fragment."""
    parts = urlsplit(value if isinstance(value, str) else "")
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError("is not the URL of an issuer, such as https://login.example.com/realms/main")
    if parts.scheme == "http" and not local:
        raise ValueError("is not HTTPS; whoever can change what is sent could sign in as anybody")
    return str(value)


def claim_name(value: object) -> str:
    """The name of a claim, perhaps within others: `realm_access.roles`."""
    if not isinstance(value, str) or not _CLAIM.fullmatch(value):
        raise ValueError("is not a claim's name; write it as groups or realm_access.roles")
    return value


def scope_names(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Names of scopes; `openid`, without which nobody can be identified, is one of them."""
    for entry in entries:
        if not re.fullmatch(r"[!#-\[\]-~]+", entry):
            raise ValueError(f"{entry!r} is not a scope; write one in each entry, without spaces")
    if "openid" not in entries:
        raise ValueError("lacks openid, by which the provider states who somebody is")
    return entries


@dataclass(frozen=True, slots=True)
class OidcOptions:
    """Which provider knows people, and what members of its groups may do."""

    issuer: str | None = setting(
        None,
        "URL of the OpenID Connect provider at which people sign in to the web pages, exactly as its discovery document "
        "names it. Unset: they sign in with API keys.",
        rule=issuer_address,
    )
    client_id: str | None = setting(
        None,
        "Tocsin's client id at the provider, which `oidc.issuer` requires. The redirect URI to register is this server's "
        "address with the path `/login/oidc/callback`.",
    )
    client_secret: str | None = setting(
        None,
        "Tocsin's client secret at the provider. Unset: a public client, which PKCE protects.",
    )
    client_secret_file: Path | None = setting(None, "File with the value of `oidc.client_secret`.")
    scopes: tuple[str, ...] = setting(
        ("openid", "profile", "email"),
        "Scopes to ask for; some providers name groups only with one more, such as `groups`.",
        rule=scope_names,
    )
    groups_claim: str = setting(
        "groups",
        "Claim with the groups of a person or program; with dots for a claim within another, such as `realm_access.roles`.",
        rule=claim_name,
    )
    grants: tuple[str, ...] = setting(
        (),
        "What members of a group may do, each as `group=role` or, on some namespaces only, `group=role:orders,bills`. The "
        "first entry counts of whose group somebody is a member; nobody else is let in.",
        rule=grants,
    )
    audience: str | None = setting(
        None,
        "The `aud` of JWT access tokens of the issuer that the API accepts as it accepts API keys. Unset: none. It must not "
        "be `oidc.client_id`, so that no ID token is taken for one.",
    )

    # Constants, which tests make smaller.

    #: How long the provider may take to answer.
    timeout_s: float = 10.0
    #: How often its keys are read again, and how soon again when a token names a key that is not known.
    keys_interval_s: float = 600.0
    keys_pause_s: float = 10.0
    #: How far the clocks of provider and node may differ.
    leeway_s: int = 60
    #: How long somebody may take to sign in at the provider.
    flow_lifetime_s: int = 900
    #: Tokens whose signature need not be checked again.
    tokens_remembered_max: int = 10_000
