"""A drain that kills its own process once the server has answered, before the rows are deleted: python killed_drain.py URL
DATABASE."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys

from tocsin_client import Client
from tocsin_client.outbox import DbApi, Drain


class Dying(DbApi):
    """Dies at the second transaction, which settles."""

    transactions = 0

    def transaction(self, work):
        self.transactions += 1
        if self.transactions == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().transaction(work)


with Client(sys.argv[1]) as client:
    Drain(client, Dying(lambda: sqlite3.connect(sys.argv[2]))).once()
