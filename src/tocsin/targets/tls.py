"""The TLS of credentials: own authorities, and certificates by which requests identify themselves."""

from __future__ import annotations

import contextlib
import hashlib
import os
import ssl
import tempfile
from collections.abc import Iterator

from tocsin.model.credential import Credential
from tocsin.model.credential_type import CredentialType
from tocsin.ports.http import Tls


class BadCertificate(ValueError):
    """Certificates or a private key can't be used. The text names the field and the mend, never the key."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason


def is_secured(credential: Credential) -> bool:
    """Whether its connections are secured otherwise than those of requests without a credential."""
    return bool(credential.ca) or credential.type is CredentialType.MTLS


def tls_of(credential: Credential, secret: str, *, to_issuer: bool = False) -> Tls | None:
    """What secures connections to the credential's origins, or `to_issuer` to its token endpoint, which its own authorities
    may have certified as well as any that the system trusts; None: the same as any other connection's. Takes tens of
    milliseconds: call it in a thread. Raises BadCertificate."""
    if not is_secured(credential):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    if not credential.ca or to_issuer:
        context.load_default_certs()
    if credential.ca:
        try:
            context.load_verify_locations(cadata=credential.ca)
        except (ssl.SSLError, ValueError) as error:
            raise BadCertificate("ca", f"has no certificates in PEM ({_reason(error)})") from None
    if credential.type is CredentialType.MTLS:
        _load_client(context, credential.certificate, secret)
    # By what secures the connections: a version may return, when the credential is removed and created again.
    parts = "\0".join((credential.certificate, credential.secret, credential.ca))
    content = hashlib.sha256(parts.encode()).hexdigest()
    return Tls(f"{credential.namespace}/{credential.name} {content} {to_issuer:d}", context)


def _load_client(context: ssl.SSLContext, certificate: str, key: str) -> None:
    def refused() -> str:
        raise ValueError("the key has a password")

    try:
        with _as_file(certificate + "\n" + key) as path:
            # Without a function, OpenSSL would ask the terminal.
            context.load_cert_chain(path, password=refused)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadCertificate("privateKey", "is not that of the certificate; send both together") from None
        reason = (
            f"does not fit together with privateKey as PEM ({_reason(error)}); send the client's own certificate first"
        )
        raise BadCertificate("certificate", reason) from None
    except ValueError:
        raise BadCertificate("privateKey", "is encrypted; send it without a password") from None


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """The path of a file with the text, which OpenSSL reads from nothing else. On Linux it is in memory only."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("credential", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        # Readable by this user only, and removed at once.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(text)
            file.flush()
            yield file.name


def _reason(error: ssl.SSLError | ValueError) -> str:
    found = error.reason if isinstance(error, ssl.SSLError) and error.reason else str(error)
    return found.lower().replace("_", " ")
