"""Uses the generated client: `drive.py <server> <key> <callback URL>`. An AssertionError names the deviation."""

from __future__ import annotations

import sys
from http import HTTPStatus

from tocsin_generated.api.namespaces import list_namespaces
from tocsin_generated.api.timers import create_timer, get_timer, list_timers, update_timer
from tocsin_generated.client import AuthenticatedClient
from tocsin_generated.models import (
    CallbackMethod,
    CreateTimer,
    CreateTimerHeadersType0,
    ErrorCode,
    ListNamespaces,
    ListTimers,
    NamespaceList,
    Problem,
    RetryPolicy,
    Timer,
    TimerName,
    TimerPage,
    TimerStatus,
    UpdateTimer,
)


def main(server: str, key: str, callback_url: str) -> None:
    client = AuthenticatedClient(base_url=server, token=key)
    headers = CreateTimerHeadersType0()
    headers["x-shop"] = "eu"
    kept = CreateTimer(
        namespace="default",
        id="python-kept",
        callback_url=callback_url,
        delay="24h",
        payload={"order": 17},
        method=CallbackMethod.PUT,
        headers=headers,
        retry_policy=RetryPolicy(max_attempts=7, initial_interval="7s"),
        callback_timeout_seconds=33.5,
        tags=["before"],
    )
    assert isinstance(create_timer.sync(client=client, body=kept), Timer)

    change = UpdateTimer(namespace="default", timer_id="python-kept", tags=["after"])
    assert change.to_dict() == {"namespace": "default", "timerId": "python-kept", "tags": ["after"]}
    changed = update_timer.sync(client=client, body=change)
    assert isinstance(changed, Timer)
    assert changed.status == TimerStatus.PENDING

    pending = ListTimers(namespace="default", status=[TimerStatus.PENDING], tags=["after"], id_prefix="python-")
    page = list_timers.sync(client=client, body=pending)
    assert isinstance(page, TimerPage)
    assert [timer.id for timer in page.timers] == ["python-kept"]

    namespaces = list_namespaces.sync(client=client, body=ListNamespaces())
    assert isinstance(namespaces, NamespaceList)
    assert "default" in [namespace.name for namespace in namespaces.namespaces]

    missed = get_timer.sync_detailed(client=client, body=TimerName(namespace="default", timer_id="python-nobody"))
    assert missed.status_code == HTTPStatus.NOT_FOUND
    assert isinstance(missed.parsed, Problem)
    assert missed.parsed.error == ErrorCode.TIMER_NOT_FOUND

    # A word of a later release than this client's.
    later = Problem.from_dict({**missed.parsed.to_dict(), "error": "ADDED_LATER"})
    assert later.error == "ADDED_LATER"

    fired = CreateTimer(
        namespace="default", id="python-fired", callback_url=callback_url, delay="50ms", payload={"by": "python"}
    )
    assert isinstance(create_timer.sync(client=client, body=fired), Timer)


if __name__ == "__main__":
    main(*sys.argv[1:])
