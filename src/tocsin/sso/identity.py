"""Who somebody is by the claims of a token, and what they may do."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tocsin.model.access import IDENTITY_PREFIX, ApiKey
from tocsin.sso.options import Grant

_ID_CHARS = 24
_NAME_CHARS_MAX = 255
#: Claims by which people know one another, the best one first.
_NAMES = ("email", "preferred_username", "name", "client_id")


class Identity(NamedTuple):
    """Somebody whom the provider knows. The id is the same for each token of theirs; `groups` are those that matter here."""

    id: str
    name: str
    groups: tuple[str, ...]


def groups_in(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    """The groups in the claim of that name, a list or one text; with dots, a claim within others. One whose own name has the
    dots, such as a URL, counts first."""
    found: Any = claims.get(claim)
    if found is None:
        found = claims
        for part in claim.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return frozenset({found})
    return frozenset(each for each in found if isinstance(each, str)) if isinstance(found, list) else frozenset()


def identity_of(claims: Mapping[str, Any], claim: str, grants: Iterable[Grant]) -> Identity:
    """Whom the claims of a checked token are about."""
    whole = hashlib.sha256(f"{claims['iss']}\n{claims['sub']}".encode()).hexdigest()
    name = next((text for each in _NAMES if isinstance(text := claims.get(each), str) and text), str(claims["sub"]))
    groups = groups_in(claims, claim) & {each.group for each in grants}
    return Identity(IDENTITY_PREFIX + whole[:_ID_CHARS], name[:_NAME_CHARS_MAX], tuple(sorted(groups)))


def key_of(identity: Identity, grants: Iterable[Grant]) -> ApiKey | None:
    """What somebody may do, as the key that they would need, whose secret nobody has. The first grant counts whose group they
    are in; None without one."""
    granted = next((each for each in grants if each.group in identity.groups), None)
    if granted is None:
        return None
    return ApiKey(identity.id, "", granted.role, granted.namespaces, note=identity.name)
