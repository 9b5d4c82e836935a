"""The recovery drill: `python -m tests.drills.recovery --store postgresql`, or `make drill STORE=postgresql`.

Timers are created and fire, clients change them, and meanwhile a backup is made. Some seconds later everything is destroyed:
the nodes are killed, and the database with its files is removed. The backup is restored, and nodes are started on it. Then
every timer that was acknowledged before the backup began has to have fired, and none early. Calls that the restored server
repeats are counted: it can't know that they had been made. The exit status is 1 if the balance is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from tests.drills.stores import STORES, Store, new_store
from tests.drills.traffic import Traffic, as_of, balanced_out, create, repeated, traffic
from tests.support.cluster import ended, now_us
from tests.support.server import ServerProcess

#: Timers created beforehand are due from the first of these seconds to the last, so before, during and after the drill.
_DUE_S = (8.0, 40.0)
#: Traffic before the backup, and between it and the end.
_BEFORE_S, _AFTER_S = 5.0, 5.0
#: More than the timers take to be due, the nodes to start and a busy machine to catch up.
_BALANCE_S = 180.0


async def drill(store: Store, timers: int) -> list[str]:
    """What is wrong."""
    async with traffic() as found:
        servers = await store.start()
        async with ended(*servers):
            for server in servers:
                await server.start()
            await create(found, servers, timers, _DUE_S)
            backed_up = await backed_up_and_killed(store, found, servers)
        await store.destroy()
        print("destroyed: nodes killed, the store's files removed", flush=True)
        begun = time.monotonic()
        restored = await store.restore()
        print(f"restored in {time.monotonic() - begun:.1f} s", flush=True)
        at_restore = now_us()
        async with ended(*restored):
            for server in restored:
                await server.start()
            owed = as_of(found.ledger, *backed_up)
            await balanced_out(owed, restored[0], _BALANCE_S)
            for server in restored:
                assert await server.stop() == 0, server.log()[-4000:]
        return balance(found, backed_up, at_restore)


async def backed_up_and_killed(store: Store, found: Traffic, servers: list[ServerProcess]) -> tuple[int, int]:
    """Makes the backup under traffic, and kills the nodes later; when the backup began and ended."""
    load = found.load(servers)
    load.start()
    await asyncio.sleep(_BEFORE_S)
    begun = now_us()
    program = await store.backup()
    taken = now_us()
    print(f"backup by {program} in {(taken - begun) / 1e6:.1f} s, under traffic", flush=True)
    await asyncio.sleep(_AFTER_S)
    for server in servers:
        await server.kill()
    killed = now_us()
    await load.abandon()
    found.ledger.kills.append(killed)
    return begun, taken


def balance(found: Traffic, backed_up: tuple[int, int], at_restore: int) -> list[str]:
    """Prints the balance; what is wrong with it."""
    ledger, (begun, taken) = found.ledger, backed_up
    owed = as_of(ledger, begun, taken)
    calls = [call for calls in ledger.receipts.values() for call in calls]
    lost = [
        timer
        for timer, changes in ledger.changes.items()
        if changes[0].sent_at > taken and ledger.owes(timer) and not ledger.receipts[timer]
    ]
    due = [timer for timer in owed.changes if owed.owes(timer)]
    missing, early = owed.missing(), ledger.early()
    print(
        f"{ledger.acknowledged} writes acknowledged, {owed.acknowledged} of them before the backup\n"
        f"{len(due)} timers of the backup had to fire, {len(due) - len(missing)} did\n"
        f"{len(calls)} calls, {sum(call.arrived_at >= at_restore for call in calls)} after the restore, "
        f"{repeated(ledger)} repeated, {len(early)} early\n"
        f"{len(lost)} timers lost that were created after the backup",
        flush=True,
    )
    wrong = []
    if not due or not any(call.arrived_at >= at_restore for call in calls):
        wrong.append("nothing was left to fire after the restore: the drill shows nothing")
    if missing:
        wrong.append(f"{len(missing)} timers acknowledged before the backup did not fire: {missing[:10]}")
    if early:
        wrong.append(f"{len(early)} calls were early: {early[:10]}")
    return wrong


def main() -> int:
    """Runs the drill of one store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--timers", type=int, default=10_000, help="created beforehand, beside those of the clients")
    given = parser.parse_args()
    store = new_store(given.store)
    try:
        wrong = asyncio.run(drill(store, given.timers))
    finally:
        store.remove()
    print("\n".join(["The balance is wrong:", *wrong] if wrong else ["The balance is right."]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
