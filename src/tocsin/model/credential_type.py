"""The types of credentials, apart from what they need: commands name them without loading that."""

from __future__ import annotations

from enum import StrEnum


class CredentialType(StrEnum):
    """How a request identifies itself: by a user's name and password, by a token, by a token that a token endpoint issues to
    a client (RFC 6749 section 4.4), by a JWT that this service signs, or by a certificate."""

    BASIC = "basic"
    BEARER = "bearer"
    OAUTH2 = "oauth2ClientCredentials"
    JWT = "jwt"
    MTLS = "mtls"


class ClientAuth(StrEnum):
    """Where a token endpoint gets the client's secret: in the header `Authorization`, or in the body."""

    BASIC = "basic"
    POST = "post"


#: The secret of each type, as requests name it.
SECRET_OF = {
    CredentialType.BASIC: "password",
    CredentialType.BEARER: "token",
    CredentialType.OAUTH2: "clientSecret",
    CredentialType.MTLS: "privateKey",
}
