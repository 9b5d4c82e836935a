"""What requests and answers contain."""

from tocsin_client._generated.models import *  # noqa: F403
