"""The HTTP requests and responses about credentials: their structs, their conversion, and what they do, with their entries in
the audit trail."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.model import credential as model
from tocsin.model.audit import AuditAction, Detail
from tocsin.model.credential import (
    CERTIFICATES_CHARS_MAX,
    HOSTS_MAX,
    LIFETIME_US_DEFAULT,
    LIFETIME_US_MAX,
    LIFETIME_US_MIN,
    SECRET_CHARS_MAX,
    is_here,
    origin_of,
    shown_host,
)
from tocsin.model.credential_type import SECRET_OF, ClientAuth, CredentialType
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import format_duration, format_instant, parse_duration
from tocsin.model.opaque import to_opaque
from tocsin.model.validation import InputRules
from tocsin.ports.audit import Actor, AuditLog
from tocsin.ports.credentials import CredentialTest
from tocsin.timers.credentials import StoredCredentials
from tocsin.web.http import constraints as limits
from tocsin.web.http.constraints import bad_fields, refuse_bad_fields
from tocsin.web.http.declared_wire import DryRun, ExpectedVersion, ManagedBy, Version, name_after
from tocsin.web.http.instants import read
from tocsin.web.http.optional import or_default, or_none
from tocsin.web.http.wire import (
    DESCRIPTION_CHARS_MAX,
    Cursor,
    Instant,
    NamespaceName,
    RequestStruct,
    ResponseStruct,
    about,
    page_of,
)

#: Characters of a user's name, a client's id, a scope or an audience.
_TEXT_CHARS_MAX = 1_000
#: Characters of what becomes a header's value: a token, a password.
_HEADER_SECRET_CHARS_MAX = 6_144
_HOST_CHARS_MAX = 300
_VISIBLE = re.compile(r"[\x21-\x7e]+\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TEXT = limits.Constraint({"minLength": 1, "maxLength": _TEXT_CHARS_MAX})
_SECRET = limits.Constraint({"minLength": 1, "maxLength": _HEADER_SECRET_CHARS_MAX})
_PEM = limits.Constraint({"minLength": 1, "maxLength": CERTIFICATES_CHARS_MAX})

CredentialName = Annotated[
    str, about("The credential's name, unique in its namespace.", "billing-api"), limits.CREDENTIAL
]
Hosts = Annotated[
    list[str],
    about(
        "Where it may be sent, and nowhere else: `host` or `host:port` for HTTPS, `http://host:port` for plain HTTP. Without "
        "any, only this machine's own addresses.",
        ["api.example.com"],
    ),
    limits.Constraint(
        {"maxItems": HOSTS_MAX, "items": {"type": "string", "minLength": 1, "maxLength": _HOST_CHARS_MAX}}
    ),
]
Kind = Annotated[CredentialType, about("How a request identifies itself.")]
Username = Annotated[str, about("Of basic: the user's name.", "tocsin"), _TEXT]
TokenUrl = Annotated[
    str,
    about("Of oauth2ClientCredentials: the token endpoint.", "https://login.example.com/oauth2/token"),
    limits.CALL_URL,
]
ClientId = Annotated[str, about("Of oauth2ClientCredentials: the client's id.", "tocsin"), _TEXT]
ClientAuthentication = Annotated[
    ClientAuth,
    about(
        "Of oauth2ClientCredentials: whether the token endpoint gets the client's secret in the header Authorization "
        "(`basic`, the default) or in the body (`post`)."
    ),
]
Scope = Annotated[str, about("Of oauth2ClientCredentials: the scopes to ask for, with spaces between.", "bills"), _TEXT]
Audience = Annotated[
    str,
    about("Of jwt: its `aud`. Of oauth2ClientCredentials: the parameter `audience`.", "https://api.example.com"),
    _TEXT,
]
Lifetime = Annotated[
    str,
    about(
        f"Of jwt: how long each is valid, {format_duration(LIFETIME_US_MIN)} to {format_duration(LIFETIME_US_MAX)}. Default "
        f"{format_duration(LIFETIME_US_DEFAULT)}.",
        "10m",
    ),
]
Certificate = Annotated[
    str, about("Of mtls: the client's certificate in PEM, followed by those that lead to its authority."), _PEM
]
Ca = Annotated[
    str,
    about(
        "Certificates in PEM of the authorities that are trusted for its hosts, instead of those that the system trusts."
    ),
    _PEM,
]
Purpose = Annotated[
    str,
    about("What it is for, in one line; shown in lists.", "The API of billing"),
    limits.new_text(DESCRIPTION_CHARS_MAX),
]


class CredentialId(RequestStruct):
    """Names a credential."""

    namespace: NamespaceName
    name: CredentialName


class CredentialFields(RequestStruct, kw_only=True):
    """What a credential has besides its secret."""

    type: Kind
    hosts: Hosts | UnsetType = UNSET
    username: Username | UnsetType = UNSET
    token_url: TokenUrl | UnsetType = UNSET
    client_id: ClientId | UnsetType = UNSET
    client_authentication: ClientAuthentication | UnsetType = UNSET
    scope: Scope | UnsetType = UNSET
    audience: Audience | UnsetType = UNSET
    lifetime: Lifetime | UnsetType = UNSET
    certificate: Certificate | UnsetType = UNSET
    ca: Ca | UnsetType = UNSET
    description: Purpose | UnsetType = UNSET


class PutCredential(CredentialFields, kw_only=True):
    """A credential with all that it has. A secret that is left out keeps its stored value, unless `hosts`, `tokenUrl` or `ca`
    would have it sent elsewhere; it is never returned. Without `managedBy` the credential keeps it; null removes it."""

    namespace: NamespaceName
    name: CredentialName
    password: Annotated[str | UnsetType, about("Of basic: the password."), _SECRET] = UNSET
    token: Annotated[str | UnsetType, about("Of bearer: the token."), _SECRET] = UNSET
    client_secret: Annotated[str | UnsetType, about("Of oauth2ClientCredentials: the client's secret."), _SECRET] = (
        UNSET
    )
    private_key: Annotated[
        str | UnsetType,
        about("Of mtls: the certificate's private key in PEM, without a password."),
        limits.Constraint({"minLength": 1, "maxLength": SECRET_CHARS_MAX}),
    ] = UNSET
    managed_by: ManagedBy | UnsetType | None = UNSET
    expected_version: ExpectedVersion | UnsetType = UNSET
    dry_run: DryRun | UnsetType = UNSET


class DeleteCredential(CredentialId):
    """A credential to delete."""

    expected_version: ExpectedVersion | UnsetType = UNSET


class TestCredential(CredentialId):
    """A credential to try."""

    url: Annotated[
        str | UnsetType,
        about("A URL to which it may go. HEAD is sent there with it.", "https://api.example.com/health"),
        limits.CALL_URL,
    ] = UNSET


class ListCredentials(RequestStruct):
    """The namespace whose credentials are wanted."""

    namespace: NamespaceName
    limit: Annotated[int | UnsetType, page_of("credentials"), limits.ROWS] = UNSET
    cursor: Cursor | UnsetType = UNSET


class Credential(ResponseStruct, kw_only=True):
    """A credential without its secret."""

    namespace: NamespaceName
    name: CredentialName
    type: Kind
    hosts: Hosts
    username: Username | UnsetType = UNSET
    token_url: TokenUrl | UnsetType = UNSET
    client_id: ClientId | UnsetType = UNSET
    client_authentication: ClientAuthentication | UnsetType = UNSET
    scope: Scope | UnsetType = UNSET
    audience: Audience | UnsetType = UNSET
    lifetime: Lifetime | UnsetType = UNSET
    certificate: Certificate | UnsetType = UNSET
    ca: Ca | UnsetType = UNSET
    description: Purpose | UnsetType = UNSET
    version: Version
    created_at: Instant
    updated_at: Instant
    managed_by: ManagedBy | UnsetType = UNSET


class CredentialPage(ResponseStruct):
    """A page of credentials, by name. A page without `nextCursor` is the last."""

    credentials: list[Credential]
    next_cursor: Cursor | UnsetType = UNSET


class TestStep(ResponseStruct):
    """A step of a test."""

    what: Annotated[str, about("What was tried: secret, token, connection or request.", "token")]
    target: Annotated[str, about("Where, or of which credential.", "https://login.example.com:443")]
    ok: Annotated[bool, about("Whether it succeeded.", True)]
    detail: Annotated[str, about("What happened.", "a token was issued")]


class TestedCredential(ResponseStruct):
    """What became of the test of a credential."""

    ok: Annotated[bool, about("Whether all steps succeeded.", True)]
    steps: Annotated[list[TestStep], about("What was tried, up to the first step without which there is no other.")]


class SigningKey(msgspec.Struct):
    """A public key (RFC 7517)."""

    kty: Annotated[str, about("The kind of key.", "EC")]
    crv: Annotated[str, about("The curve.", "P-256")]
    x: Annotated[str, about("The public point's x.", "inQqsefRJ6kXiypSJ8LjWO7Bm-nIb54gCQkiqVAwa-Y")]
    y: Annotated[str, about("The public point's y.", "mKyAls52cxf0dCvNbduKhHmkhqqVlzbtX58OxZnM_8Q")]
    kid: Annotated[
        str, about("The key's id, which is in the header of each JWT.", "RkD22atHdDasjExrsQMYuwJwD78kDROIDjSP1jkjKwk")
    ]
    use: Annotated[str, about("What it is for: signatures.", "sig")]
    alg: Annotated[str, about("The algorithm.", "ES256")]


class SigningKeySet(msgspec.Struct):
    """A JWK set (RFC 7517)."""

    keys: list[SigningKey]


class OpenIdConfiguration(msgspec.Struct):
    """What receivers need to know of the issuer (OpenID Connect Discovery 1.0). Nobody signs in here."""

    issuer: Annotated[str, about("The `iss` of each JWT: the setting `public_url`.", "https://timers.example")]
    jwks_uri: Annotated[str, about("Where its keys are.", "https://timers.example/.well-known/jwks.json")]
    response_types_supported: tuple[str, ...] = ("id_token",)
    subject_types_supported: tuple[str, ...] = ("public",)
    id_token_signing_alg_values_supported: tuple[str, ...] = ("ES256",)


#: The fields that belong to types, with those of the struct.
_OF_TYPES = {
    "username": "username",
    "password": "password",
    "token": "token",
    "tokenUrl": "token_url",
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "clientAuthentication": "client_authentication",
    "scope": "scope",
    "audience": "audience",
    "lifetime": "lifetime",
    "certificate": "certificate",
    "privateKey": "private_key",
}
#: The fields of each type: those that it requires, besides its secret, and further ones.
_REQUIRED: Mapping[CredentialType, tuple[str, ...]] = {
    CredentialType.BASIC: ("username",),
    CredentialType.BEARER: (),
    CredentialType.OAUTH2: ("tokenUrl", "clientId"),
    CredentialType.JWT: ("audience",),
    CredentialType.MTLS: ("certificate",),
}
_FURTHER: Mapping[CredentialType, tuple[str, ...]] = {
    CredentialType.OAUTH2: ("clientAuthentication", "scope", "audience"),
    CredentialType.JWT: ("lifetime",),
}


def credential_answer(credential: model.Credential) -> Credential:
    """A credential as clients see it: without its secret."""
    issued, signed = credential.type is CredentialType.OAUTH2, credential.type is CredentialType.JWT
    return Credential(
        namespace=credential.namespace,
        name=credential.name,
        type=credential.type,
        hosts=[shown_host(each) for each in credential.origins],
        username=credential.username or UNSET,
        token_url=credential.token_url or UNSET,
        client_id=credential.client_id or UNSET,
        client_authentication=credential.client_auth if issued else UNSET,
        scope=credential.scope or UNSET,
        audience=credential.audience or UNSET,
        lifetime=format_duration(credential.lifetime_us) if signed else UNSET,
        certificate=credential.certificate or UNSET,
        ca=credential.ca or UNSET,
        description=credential.description or UNSET,
        version=credential.version,
        created_at=format_instant(credential.created_at),
        updated_at=format_instant(credential.updated_at),
        managed_by=credential.managed_by or UNSET,
    )


def tested_answer(test: CredentialTest) -> TestedCredential:
    """The outcome of a test as clients see it."""
    return TestedCredential(test.ok, [TestStep(*step) for step in test.steps])


class CredentialRequests:
    """Every method raises InvalidInput with all bad fields of the request, and the errors of `StoredCredentials`."""

    def __init__(self, credentials: StoredCredentials, rules: InputRules, audit: AuditLog) -> None:
        self._credentials, self._rules, self._audit = credentials, rules, audit

    async def put(self, sent: PutCredential, actor: Actor) -> tuple[model.Credential, bool]:
        """Creates a credential or replaces what it has. The credential, and whether anything has changed."""
        destination = self._credentials.destination
        credential = credential_in(sent.namespace, sent.name, sent, self._rules, destination)
        secret = _secret_of(sent)
        dry_run = sent.dry_run is True
        stored, changed = await self._credentials.put(
            credential, secret, sent.managed_by, or_none(sent.expected_version), dry_run=dry_run
        )
        if changed and not dry_run:
            details: dict[str, Detail] = {
                "credential": stored.name,
                "version": stored.version,
                "type": stored.type.value,
                "hosts": [shown_host(each) for each in stored.origins],
                "secret": "kept" if secret is None else "set",
            }
            await self._audit.write(AuditAction.CREDENTIAL_CHANGED, actor, stored.namespace, details)
        return stored, changed

    async def get(self, sent: CredentialId) -> model.Credential:
        """The credential."""
        return await self._credentials.get(*self._name(sent))

    async def delete(self, sent: DeleteCredential, actor: Actor) -> None:
        """Removes the credential."""
        await self._credentials.delete(*self._name(sent), or_none(sent.expected_version))
        await self._audit.write(AuditAction.CREDENTIAL_DELETED, actor, sent.namespace, {"credential": sent.name})

    async def test(self, sent: TestCredential) -> CredentialTest:
        """Tries the credential."""
        return await self._credentials.test(*self._name(sent), or_none(sent.url))

    def _name(self, sent: CredentialId) -> tuple[str, str]:
        refuse_bad_fields(sent, self._rules)
        return sent.namespace, sent.name

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, sent: ListCredentials) -> CredentialPage:
        """A page of the namespace's credentials."""
        errors = bad_fields(sent, self._rules)
        after = name_after(sent.cursor, "credential", errors)
        if errors:
            raise InvalidInput(*errors)
        limit = or_default(sent.limit, limits.ROWS_DEFAULT)
        found, more = await self._credentials.page(sent.namespace, after, limit)
        return CredentialPage(
            [credential_answer(each) for each in found], to_opaque(found[-1].name.encode()) if more else UNSET
        )


def credential_in(
    namespace: str, name: str, sent: CredentialFields, rules: InputRules, destination: Callable[[str], str]
) -> model.Credential:
    """The credential of a request, before it is stored: without its secret, and with instants of 0. `destination` returns
    scheme, host and port of a URL. Raises InvalidInput with all bad fields."""
    errors = [*bad_fields(sent, rules), *_of_type(sent)]
    origins = _origins(sent, destination, errors)
    lifetime_us = LIFETIME_US_DEFAULT
    if sent.lifetime is not UNSET:
        found = len(errors)
        lifetime_us = read(parse_duration, "lifetime", sent.lifetime, errors)
        if len(errors) == found and not LIFETIME_US_MIN <= lifetime_us <= LIFETIME_US_MAX:
            reason = f"must be {format_duration(LIFETIME_US_MIN)} to {format_duration(LIFETIME_US_MAX)}"
            errors.append(FieldError("lifetime", reason))
    if sent.token_url is not UNSET:
        errors += _bad_token_url(sent.token_url, origins, rules, destination)
    if sent.type is CredentialType.BASIC and (":" in (sent.username or "") or _CONTROL.search(sent.username or "")):
        reason = "has a colon or a control character, which basic authentication can't send"
        errors.append(FieldError("username", reason))
    if isinstance(sent, PutCredential):
        errors += _bad_secret(sent)
    if errors:
        raise InvalidInput(*errors)
    return model.Credential(
        namespace,
        name,
        sent.type,
        0,
        0,
        origins,
        username=sent.username or "",
        token_url=sent.token_url or "",
        client_id=sent.client_id or "",
        client_auth=sent.client_authentication or ClientAuth.BASIC,
        scope=sent.scope or "",
        audience=sent.audience or "",
        lifetime_us=lifetime_us,
        certificate=sent.certificate or "",
        ca=sent.ca or "",
        description=sent.description or None,
    )


def _origins(sent: CredentialFields, destination: Callable[[str], str], errors: list[FieldError]) -> tuple[str, ...]:
    origins = []
    for position, host in enumerate(() if sent.hosts is UNSET else sent.hosts):
        origin = origin_of(host, destination)
        if origin is None:
            reason = "is no host; write host or host:port for HTTPS, or http://host:port for plain HTTP"
            errors.append(FieldError(f"hosts[{position}]", reason))
        elif sent.type is CredentialType.MTLS and origin.startswith("http:"):
            errors.append(FieldError(f"hosts[{position}]", "is of plain HTTP, which knows no certificates"))
        else:
            origins.append(origin)
    return tuple(dict.fromkeys(origins))


def _bad_token_url(
    url: str, origins: tuple[str, ...], rules: InputRules, destination: Callable[[str], str]
) -> list[FieldError]:
    if (reason := rules.url(url)) is not None:
        return [FieldError("tokenUrl", reason)]
    origin = destination(url)
    if origin.startswith("https:") or is_here(origin) or origin in origins:
        return []
    reason = f"is of plain HTTP, which shows the client's secret; use https, or list {origin} in hosts all the same"
    return [FieldError("tokenUrl", reason)]


def _of_type(sent: CredentialFields) -> list[FieldError]:
    """The errors in which fields there are."""
    required = _REQUIRED[sent.type]
    allowed = {*required, *_FURTHER.get(sent.type, ()), SECRET_OF.get(sent.type, "")}
    errors = [
        FieldError(name, f"is missing; type {sent.type} requires it")
        for name, field in _OF_TYPES.items()
        if name in required and not getattr(sent, field, UNSET)
    ]
    return errors + [
        FieldError(name, f"does not belong to type {sent.type}; leave it out")
        for name, field in _OF_TYPES.items()
        if getattr(sent, field, UNSET) is not UNSET and name not in allowed
    ]


def _secret_of(sent: PutCredential) -> str | None:
    """The secret; None if it was not sent."""
    field = SECRET_OF.get(sent.type)
    found = UNSET if field is None else getattr(sent, _OF_TYPES[field])
    return None if found is UNSET else str(found)


def _bad_secret(sent: PutCredential) -> list[FieldError]:
    secret = _secret_of(sent)
    if secret is None:
        return []
    if sent.type is CredentialType.BEARER and not _VISIBLE.match(secret):
        return [FieldError("token", "has characters other than visible ASCII; send the token alone, without Bearer")]
    if sent.type in (CredentialType.BASIC, CredentialType.OAUTH2) and _CONTROL.search(secret):
        return [FieldError(SECRET_OF[sent.type], "has a control character; check that it ends without a line break")]
    return []
