"""The image's HEALTHCHECK: exits with 0 if the server in this container answers `/healthz`. It imports little, since it runs
every few seconds, and needs no package of Tocsin's."""

import os
import socket
import sys

TIMEOUT_S = 2.0

try:
    with socket.create_connection(("127.0.0.1", int(os.environ["TOCSIN_PORT"])), TIMEOUT_S) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        status = connection.recv(12)
except (OSError, KeyError, ValueError) as error:
    sys.exit(f"the server does not answer: {error}")
sys.exit(0 if status == b"HTTP/1.1 200" else f"the server answers {status!r}")
