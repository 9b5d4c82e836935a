"""Credentials for targets: what a timer's requests identify themselves with. Timers name a credential and never have its
values; each is sent to the credential's own origins and to no other."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection

import msgspec

from tocsin.model.credential_type import ClientAuth, CredentialType
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import US_PER_SECOND

#: Characters of a name.
NAME_CHARS_MAX = 100
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}\Z", re.ASCII)
#: Credentials of a namespace; each node keeps a token of each.
CREDENTIALS_MAX = 100
#: Origins of a credential.
HOSTS_MAX = 20
#: Characters of a secret: a private key of RSA has 3,300 in PEM, and a header's value takes no more.
SECRET_CHARS_MAX = 8_192
#: Characters of a bundle of certificates.
CERTIFICATES_CHARS_MAX = 64 * 1024
#: How long a JWT is valid.
LIFETIME_US_MIN, LIFETIME_US_DEFAULT, LIFETIME_US_MAX = 60 * US_PER_SECOND, 600 * US_PER_SECOND, 3_600 * US_PER_SECOND


def name_reason(name: str) -> str | None:
    """Why it is no name of a credential; None if it is one."""
    if _NAME.match(name):
        return None
    return f"is no credential's name; use 1 to {NAME_CHARS_MAX} letters, digits and . _ -"


class Credential(msgspec.Struct, frozen=True, omit_defaults=True):
    """A credential as it is stored. `origins` are those to which it may go, each as scheme, host and port; none: those of
    this machine. `secret` is sealed; a JWT has none. `ca` and `certificate` are certificates in PEM: the authorities that
    are trusted instead of the system's, and the client's own with what leads to its authority. `created_at` and `updated_at`
    are microseconds."""

    namespace: str
    name: str
    type: CredentialType
    created_at: int
    updated_at: int
    origins: tuple[str, ...] = ()
    secret: str = ""
    username: str = ""
    token_url: str = ""
    client_id: str = ""
    client_auth: ClientAuth = ClientAuth.BASIC
    scope: str = ""
    audience: str = ""
    lifetime_us: int = LIFETIME_US_DEFAULT
    certificate: str = ""
    ca: str = ""
    description: str | None = None
    managed_by: str | None = None
    version: int = 1

    @property
    def seal_context(self) -> str:
        """The context in which its secret is sealed."""
        return f"credential:{self.namespace}/{self.name}"

    @property
    def needs_token(self) -> bool:
        """Whether its requests have a token that is issued or signed for them."""
        return self.type in (CredentialType.OAUTH2, CredentialType.JWT)

    def goes_to(self, destination: str) -> bool:
        """Whether it may be sent to a destination: scheme, host and port."""
        return destination in self.origins if self.origins else is_here(destination)

    def leads_elsewhere(self, former: Credential) -> bool:
        """Whether its secret would be sent where that of `former` is not sent, or protected by other authorities."""
        return (
            (self.token_url, self.ca) != (former.token_url, former.ca)
            or bool(former.origins) is not bool(self.origins)
            or not set(self.origins) <= set(former.origins)
        )


class SigningKey(msgspec.Struct, frozen=True):
    """A key with which this service signs JWTs: its number, 1 and one more with each next one; its id; the instant
    (microseconds) from which it signs, until the next one does; its public part, a JWK; and its private one, sealed."""

    number: int
    kid: str
    signs_from: int
    public: dict[str, str]
    private: str

    @property
    def seal_context(self) -> str:
        """The context in which its private part is sealed."""
        return f"credential:signing_key/{self.kid}"


def origin_of(host: str, destination: Callable[[str], str]) -> str | None:
    """The origin that requests name as a host: scheme, host and port; None if it names none. `destination` returns those of a
    URL."""
    scheme, separator, rest = host.partition("://")
    if not separator:
        scheme, rest = "https", host
    found = destination(f"{scheme}://{rest}/")
    is_origin = found.startswith(("https://", "http://")) and not set("/?#@").intersection(rest)
    return found if is_origin else None


def shown_host(origin: str) -> str:
    """An origin as requests name it: `api.example.com`, `api.example.com:8443`, `http://api.internal:8080`."""
    scheme, _, rest = origin.partition("://")
    default = ":443" if scheme == "https" else ":80"
    return ("" if scheme == "https" else "http://") + rest.removesuffix(default)


def is_here(destination: str) -> bool:
    """Whether the destination is of this machine, whatever resolves names: by its address, or by the name for it."""
    host = destination.partition("://")[2].rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        name = host.rstrip(".")
        # RFC 6761 section 6.3.
        return name == "localhost" or name.endswith(".localhost")


def refusal(credential: Credential | None, namespace: str, name: str, destination: str) -> str | None:
    """Why the credential of this name may not be sent to a destination, phrased to follow the field's name `credential`; None
    if it may."""
    if credential is None:
        return f"names {name!r}, which namespace {namespace!r} doesn't have; create it first with credentials/put"
    if not credential.goes_to(destination):
        permitted = ", ".join(credential.origins) if credential.origins else "this machine's own addresses"
        return f"names {name!r}, which goes only to {permitted}, not to {destination}; add that to its hosts, or leave it out"
    if credential.type is CredentialType.MTLS and not destination.startswith("https://"):
        return f"names {name!r}, a certificate, which requires a URL that begins with https://"
    return None


class CredentialCheck(msgspec.Struct, frozen=True):
    """Checks which credentials go with which URLs. `known` returns the credential of a namespace and name, `destination`
    scheme, host and port of a URL."""

    known: Callable[[str, str], Credential | None]
    destination: Callable[[str], str]

    def refusal(self, namespace: str, name: str, url: str) -> str | None:
        """Why a request to the URL may not have this credential."""
        return refusal(self.known(namespace, name), namespace, name, self.destination(url))

    def check(self, namespace: str, uses: Collection[tuple[str, str, str]]) -> None:
        """Raises InvalidInput for each use, a field with the credential's name and the URL, that is not permitted."""
        reasons = ((field, self.refusal(namespace, name, url)) for field, name, url in uses)
        errors = [FieldError(field, reason) for field, reason in reasons if reason is not None]
        if errors:
            raise InvalidInput(*errors)
