"""Whether a server can't be trusted."""

from __future__ import annotations

import ssl


def is_untrusted(failed: BaseException | None) -> bool:
    """Whether the error is, or comes from, a certificate that can't be verified."""
    while failed is not None:
        if any(isinstance(each, ssl.SSLCertVerificationError) for each in (failed, *failed.args)):
            return True
        failed = failed.__cause__
    return False
