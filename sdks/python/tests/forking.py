"""Uses clients before forks, and in parent and children after them: python forking.py KIND URL.

Prints what went wrong, one line each; nothing if nothing did.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from tocsin_client import AsyncClient, Client, CreateTimer

PROCESSES, CREATES, THREADS = 4, 300, 8
HOOK = "http://127.0.0.1:9/"


def timer(name):
    return CreateTimer(namespace="default", id=name, callback_url=HOOK, delay="30d")


def in_children(work):
    """Runs it in forked processes with their numbers, and meanwhile in this one."""
    children = []
    for number in range(1, PROCESSES):
        pid = os.fork()
        if pid == 0:
            try:
                work(number)
            except BaseException as error:  # noqa: BLE001 (printed)
                print(f"process {number}: {error!r}", flush=True)
                os._exit(1)
            os._exit(0)
        children.append(pid)
    work(0)
    for pid in children:
        if os.waitpid(pid, 0)[1]:
            print("a child failed")


def wrong(name, create):
    """Whether a create failed, or returned another's timer."""
    try:
        made = create(name)
    except Exception as error:  # noqa: BLE001 (counted)
        return f"{name}: {error!r}"
    return None if made.id == name else f"{name} got {made.id}"


def creates(client, number):
    def create(name):
        return client.timers.create("default", name, HOOK, delay="30d")

    with ThreadPoolExecutor(THREADS) as threads:
        names = [f"{number}-{each}" for each in range(CREATES)]
        for found in threads.map(lambda name: wrong(name, create), names):
            if found:
                print(found, flush=True)


def sync(url):
    """Idle connections, and threads that use others of them while the process forks."""
    with Client(url) as client:
        creates(client, "warm")
        going = threading.Event()

        def go_on():
            count = 0
            while not going.is_set():
                client.timers.create("default", f"beside-{count % 50}", HOOK, delay="30d")
                count += 1

        beside = [threading.Thread(target=go_on) for _ in range(2)]
        for thread in beside:
            thread.start()
        in_children(lambda number: creates(client, number))
        going.set()
        for thread in beside:
            thread.join()


def batcher(url):
    """Some timers wait at the fork, and a thread holds the batcher's lock as often as it can."""
    with Client(url) as client:
        collected = client.timers.batcher()
        collected.add(timer("first")).result()
        going = threading.Event()

        def go_on():
            while not going.is_set():
                for future in [collected.add(timer(f"beside-{each}")) for each in range(100)]:
                    future.result()

        beside = threading.Thread(target=go_on)
        beside.start()

        def work(number):
            futures = {name: collected.add(timer(name)) for name in (f"{number}-{each}" for each in range(CREATES))}
            for name, future in futures.items():
                if future.result().id != name:
                    print(f"{name} got {future.result().id}", flush=True)
            if number:
                collected.close()

        in_children(work)
        going.set()
        beside.join()
        collected.close()


def asynchronous(url):
    """A client, and a batcher, of an event loop that is closed, and whose connections are still open."""
    client = AsyncClient(url)
    kept = {}

    async def work(number):
        if "batcher" not in kept:
            kept["batcher"] = client.timers.batcher()
        names = [f"{number}-{each}" for each in range(CREATES)]
        calls = [client.timers.create("default", name, HOOK, delay="30d") for name in names]
        added = [await kept["batcher"].add(timer(f"batch-{name}")) for name in names]
        wanted = names + [f"batch-{name}" for name in names]
        for name, made in zip(wanted, await asyncio.gather(*calls, *added), strict=True):
            if made.id != name:
                print(f"{name} got {made.id}", flush=True)

    async def parent():
        await work("warm")
        here = asyncio.get_running_loop()
        forked = asyncio.Event()

        def children():
            in_children(lambda number: asyncio.run(work(number)) if number else here.call_soon_threadsafe(forked.set))

        waiting = asyncio.create_task(asyncio.to_thread(children))
        await forked.wait()
        await work(0)
        await waiting
        await client.close()

    asyncio.run(parent())


if __name__ == "__main__":
    {"sync": sync, "batcher": batcher, "async": asynchronous}[sys.argv[1]](sys.argv[2])
