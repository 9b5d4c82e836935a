"""What a change of a credential does to the node that gets it."""

from __future__ import annotations

import random
import threading

from tocsin.model.credential import Credential
from tocsin.model.credential_type import CredentialType
from tocsin.model.errors import FieldError
from tocsin.ports.credentials import NoCredentials
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.service import TimerService


class Uncalled:
    """A caller for timers; there are none."""

    def destination(self, url: str) -> str:
        return url


class Looking(NoCredentials):
    """Notes on which threads it looks at credentials."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def refusal(self, credential: Credential, secret: str) -> FieldError | None:
        self.threads.append(threading.current_thread())
        return super().refusal(credential, secret)


async def test_certificates_are_looked_at_beside_the_event_loop() -> None:
    clock, tester = SystemClock(), Looking()
    store = MemoryStore(clock)
    await store.open(1)
    context = Context(
        store=store, caller=Uncalled(), clock=clock, limits=EngineLimits(), observe=lambda event: None,
        random=random.Random(1), incarnation=b"n" * 16,
    )  # fmt: skip
    supervisor = Supervisor(context, node="n", address="", total_shards=1, fatal=lambda error: None)
    service = TimerService(context, supervisor, namespace_num_shards=1, retention_us=10**12, tester=tester)
    await service.namespaces.ensure_default()
    wanted = Credential("default", "api", CredentialType.MTLS, 0, 0, certificate="a certificate")
    stored, changed = await service.credentials.put(wanted, "its key")
    assert changed and stored.version == 1
    assert len(tester.threads) == 1 and threading.current_thread() not in tester.threads
