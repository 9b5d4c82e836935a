"""Certificates of nodes, in the files that the settings name."""

from __future__ import annotations

from pathlib import Path

import trustme


class NodeFiles:
    """A node's certificate, its key and the authority's certificate, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate, self.key, self.ca = (folder / name for name in ("tls.crt", "tls.key", "ca.crt"))
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, *authorities: trustme.CA, name: str = "tocsin-node") -> None:
        """Writes a new certificate of the first authority, beside which the node trusts the others."""
        issued = authorities[0].issue_cert(name)
        # Other files are renamed into place, so that no reader sees half of one.
        for path, content in (
            (self.certificate, b"".join(blob.bytes() for blob in issued.cert_chain_pems)),
            (self.key, issued.private_key_pem.bytes()),
            (self.ca, b"".join(authority.cert_pem.bytes() for authority in authorities)),
        ):
            new = path.with_suffix(".new")
            new.write_bytes(content)
            new.chmod(0o600)
            new.replace(path)

    @property
    def env(self) -> dict[str, str]:
        """The settings of a node that uses them."""
        return {
            "TOCSIN_CLUSTER_TLS_CERTIFICATE_FILE": str(self.certificate),
            "TOCSIN_CLUSTER_TLS_KEY_FILE": str(self.key),
            "TOCSIN_CLUSTER_TLS_CA_FILE": str(self.ca),
        }
