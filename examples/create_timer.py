"""Creates a timer with nothing but Python's standard library.

    python examples/create_timer.py http://127.0.0.1:9000/ 10s

TOCSIN_URL names the server and TOCSIN_KEY the API key. The idempotency key makes the request safe to repeat if its answer is
lost: it creates one timer, which fires once. A request with another key replaces the timer of that id.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
import uuid

ANSWER_TIMEOUT_S = 10


def create_timer(callback_url: str, delay: str, timer_id: str) -> dict[str, object]:
    """Creates the timer and returns it. Raises SystemExit with the reasons if the server refuses."""
    timer = {
        "namespace": "default",
        "id": timer_id,
        "delay": delay,
        "callbackUrl": callback_url,
        "payload": {"order": 17},
        "retryPolicy": {"maxAttempts": 5, "initialInterval": "1s"},
    }
    headers = {"content-type": "application/json", "idempotency-key": str(uuid.uuid4())}
    if key := os.environ.get("TOCSIN_KEY"):
        headers["authorization"] = f"Bearer {key}"
    server = os.environ.get("TOCSIN_URL", "http://127.0.0.1:8080")
    request = urllib.request.Request(f"{server}/api/v1/timers/create", json.dumps(timer).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as response:
            created: dict[str, object] = json.load(response)
            return created
    except urllib.error.HTTPError as refused:
        problem = json.load(refused)
        sys.exit(
            "\n".join([problem["detail"], *(f"{bad['path']}: {bad['reason']}" for bad in problem.get("errors", []))])
        )


def main() -> None:
    """Runs the command."""
    if len(sys.argv) != 3:
        sys.exit("usage: create_timer.py CALLBACK_URL DELAY")
    timer = create_timer(sys.argv[1], sys.argv[2], timer_id="order-17-reminder")
    print(f"{timer['id']} fires at {timer['executeAt']}")


if __name__ == "__main__":
    main()
