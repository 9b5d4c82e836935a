"""Celery: tasks with an `eta`, Redis as the broker."""

from __future__ import annotations

import sys

import urllib3
from celery import Celery, group

from bench.peers.programs.common import Timer, obey_in_threads

_THREADS = 8


def application(url: str, receiver: str = "") -> Celery:
    app, http = Celery("timers", broker=url), urllib3.PoolManager(maxsize=64, retries=False)
    app.conf.update(task_ignore_result=True, task_acks_late=True, broker_pool_limit=64, enable_utc=True)

    @app.task(name="fire")
    def fire(body: str) -> None:
        response = http.request("POST", receiver, body=body.encode(), headers={"content-type": "application/json"})
        if response.status != 200:
            raise RuntimeError(f"the receiver answered {response.status}")

    return app


def create(url: str) -> None:
    fire = application(url).tasks["fire"]

    def call(timers: list[Timer]) -> None:
        # One call, but each of the tasks is a message of its own.
        tasks = [fire.s(timer.body).set(eta=timer.due) for timer in timers]
        (group(tasks) if len(tasks) > 1 else tasks[0]).apply_async()

    obey_in_threads(call)


def work(url: str, receiver: str) -> None:
    application(url, receiver).worker_main(
        ["worker", "--pool=threads", f"--concurrency={_THREADS}", "--loglevel=WARNING", "--without-gossip",
         "--without-mingle", "--without-heartbeat", "-O", "fair"]
    )  # fmt: skip


if __name__ == "__main__":
    {"create": create, "work": work}[sys.argv[1]](*sys.argv[2:])
