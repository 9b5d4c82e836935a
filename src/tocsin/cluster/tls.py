"""TLS between nodes: certificates from files, mutual verification, and new files without a restart.

Both sides verify that the other's certificate was signed by an authority of the CA file and has the cluster's name as a
subject alternative name. Addresses are not compared: they change whenever a node moves, and what a certificate proves is that
its owner is a node of this cluster. Which node it is, the handshake that follows proves.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tocsin.model.errors import ConfigError
from tocsin.model.setting import setting
from tocsin.model.setting_values import dns_name
from tocsin.ports.observer import Event, PeerCertificateLoaded, PeerCertificateNotLoaded

#: How often the files are checked for changes. A change of content without one of time, inode and size goes unnoticed.
CHECK_INTERVAL_S = 5.0
#: Steps of a handshake in memory; TLS 1.3 takes three.
_HANDSHAKE_STEPS_MAX = 10


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """PEM files, all or none, and the name that every node's certificate has."""

    certificate_file: Path | None = setting(
        None,
        "PEM file with the certificate that this node shows to other nodes, then the intermediate ones. With it, "
        "`cluster.tls_key_file` and `cluster.tls_ca_file`, nodes speak TLS with one another, and a connection without "
        "it is refused. The files are read again when they change.",
        name="tls_certificate_file",
    )
    key_file: Path | None = setting(
        None,
        "PEM file with the private key of `cluster.tls_certificate_file`, without a passphrase.",
        name="tls_key_file",
    )
    ca_file: Path | None = setting(
        None,
        "PEM file with the certificates of the authorities that sign nodes' certificates. While an authority is "
        "replaced, it has the former and the new one.",
        name="tls_ca_file",
    )
    name: str = setting(
        "tocsin-node",
        "DNS name that the certificate of every node has as a subject alternative name. A certificate of the same "
        "authority without it is refused.",
        rule=dns_name,
        name="tls_name",
    )

    @property
    def files(self) -> TlsFiles | None:
        """The files; None without TLS."""
        if self.certificate_file is None or self.key_file is None or self.ca_file is None:
            return None
        return TlsFiles(self.certificate_file, self.key_file, self.ca_file)


class TlsFiles(NamedTuple):
    """The files of a node with TLS."""

    certificate: Path
    key: Path
    ca: Path


class Contexts(NamedTuple):
    """What the files contain: contexts for the connections of one time, and when the node's certificate ends, in seconds
    since 1970."""

    accepting: ssl.SSLContext
    dialing: ssl.SSLContext
    ends_s: float


class PeerTls:
    """The contexts for new connections. Connections that exist keep theirs until they end."""

    def __init__(self, files: TlsFiles, name: str, observe: Callable[[Event], None]) -> None:
        """Reads the files. Raises ConfigError with the setting of the file that is wrong."""
        self.name = name
        self._files = files
        self._observe = observe
        self._stamp = self._now_on_disk()
        self._contexts = load(files, name)
        observe(PeerCertificateLoaded(int(self._contexts.ends_s)))

    @property
    def accepting(self) -> ssl.SSLContext:
        """For connections that other nodes open."""
        return self._contexts.accepting

    @property
    def dialing(self) -> ssl.SSLContext:
        """For connections that this node opens; its `server_hostname` is `name`."""
        return self._contexts.dialing

    @property
    def ends_s(self) -> float:
        """When the certificate in use ends, in seconds since 1970."""
        return self._contexts.ends_s

    def refresh(self, *, always: bool = False) -> None:
        """Reads the files again if they have changed. Files that can't be used are reported, and the former ones stay."""
        stamp = self._now_on_disk()
        if stamp == self._stamp and not always:
            return
        self._stamp = stamp
        try:
            self._contexts = load(self._files, self.name)
        except (ConfigError, OSError) as error:
            # An OSError: a file is being replaced at this moment. Its change is noticed next time.
            self._observe(PeerCertificateNotLoaded(str(error)))
        else:
            self._observe(PeerCertificateLoaded(int(self._contexts.ends_s)))

    async def follow(self) -> None:
        """Refreshes periodically, until it is cancelled."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            self.refresh()

    def _now_on_disk(self) -> tuple[object, ...]:
        return tuple(map(_stamp_of, self._files))

    def refusal_of(self, certificate: dict[str, Any] | None) -> str | None:
        """Why a verified certificate of a dialing node is refused; None if it has the cluster's name. A dialed node's is
        checked by the TLS library."""
        names = [value for kind, value in (certificate or {}).get("subjectAltName", ()) if kind == "DNS"]
        if self.name in (name.lower() for name in names):
            return None
        found = ", ".join(names) if names else "none"
        return f"its certificate does not have the name {self.name} (cluster.tls_name); its names: {found}"


def load(files: TlsFiles, name: str) -> Contexts:
    """The contexts for the files as they are now. Raises ConfigError, OSError."""
    accepting, dialing = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in (accepting, dialing):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        for role, path in (("ca", files.ca), ("certificate", files.certificate), ("key", files.key)):
            if not os.access(path, os.R_OK):
                raise ConfigError(f"cluster.tls_{role}_file: {path} can't be read: {_why_unreadable(path)}")
        try:
            context.load_verify_locations(cafile=files.ca)
        except ssl.SSLError as error:
            raise ConfigError(
                f"cluster.tls_ca_file: {files.ca} has no certificate in PEM form ({fault_of(error)})"
            ) from error
        try:
            # Without a passphrase it would ask on the terminal.
            context.load_cert_chain(files.certificate, files.key, password=_refuse_passphrase)
        except ssl.SSLError as error:
            raise ConfigError(
                f"cluster.tls_certificate_file: {files.certificate} with the key in {files.key} can't be used "
                f"({fault_of(error)}); both have to be in PEM form, and the key has to be the certificate's"
            ) from error
        except _PassphraseAsked:
            raise ConfigError(
                f"cluster.tls_key_file: {files.key} has a passphrase; write the key without one"
            ) from None
    # Sessions are not resumed: each connection verifies the certificates that are in force.
    accepting.num_tickets = 0
    try:
        ends_s = _checked(accepting, dialing, name)
    except ssl.SSLError as error:
        raise ConfigError(
            f"cluster.tls_certificate_file: other nodes would refuse {files.certificate}: {fault_of(error)}. It has to be "
            f"signed by an authority in {files.ca}, be valid now, have the name {name} (cluster.tls_name), and be for "
            "servers and clients"
        ) from error
    return Contexts(accepting, dialing, ends_s)


class _PassphraseAsked(Exception):
    """The key is encrypted."""


def _refuse_passphrase() -> str:
    raise _PassphraseAsked


def _checked(accepting: ssl.SSLContext, dialing: ssl.SSLContext, name: str) -> float:
    """When the certificate ends, in seconds since 1970. Connects the contexts to one another in memory, so that a certificate
    that other nodes would refuse is noticed here, and now. Raises ssl.SSLError."""
    to_accepting, to_dialing = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        dialing.wrap_bio(to_dialing, to_accepting, server_side=False, server_hostname=name),
        accepting.wrap_bio(to_accepting, to_dialing, server_side=True),
    ]
    for step in range(_HANDSHAKE_STEPS_MAX):
        with contextlib.suppress(ssl.SSLWantReadError):
            sides[step % 2].do_handshake()
    certificate = sides[0].getpeercert()
    assert certificate is not None
    return float(ssl.cert_time_to_seconds(str(certificate["notAfter"])))


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _why_unreadable(path: Path) -> str:
    try:
        with path.open("rb"):
            return "permission denied"
    except OSError as error:
        return error.strerror or str(error)


def fault_of(error: ssl.SSLError) -> str:
    """What went wrong, without codes."""
    verifying = getattr(error, "verify_message", "")
    return str(verifying or error.reason or error).replace("_", " ").rstrip(".").lower()
