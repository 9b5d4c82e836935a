"""A shop that takes orders: `python -m tests.crash.inbox_orders DATABASE HOOK SEED FIRST LAST PAUSE_S`.

Each order is a row of `orders` and, in the same transaction, a timer that is due at once. It commits some and rolls others
back, and prints the number of each order it has committed with the time, in microseconds since 1970.
"""

from __future__ import annotations

import random
import sys
import time

from tocsin_client.outbox import outbox
from tocsin_client.outbox.__main__ import connector

ROLLED_BACK = 0.3
#: Orders that are taken in one transaction.
TOGETHER = (1, 1, 1, 3)


def main() -> None:
    """Takes the orders from FIRST up to LAST."""
    database, hook, seed, *numbers, pause = sys.argv[1:]
    first, last = map(int, numbers)
    chance, connection = random.Random(f"{seed} {first}"), connector(database)()
    cursor, number = connection.cursor(), first
    while number < last:
        taken = range(number, min(number + chance.choice(TOGETHER), last))
        for order in taken:
            cursor.execute("INSERT INTO orders (id) VALUES (%s)", (order,))
            outbox(connection).create("default", f"order-{order}", hook, delay="0s", payload={"order": order})
        if chance.random() < ROLLED_BACK:
            connection.rollback()
        else:
            connection.commit()
            print("\n".join(f"{order} {time.time_ns() // 1_000}" for order in taken), flush=True)
        number = taken.stop
        time.sleep(chance.uniform(0, 2 * float(pause)) * len(taken))


if __name__ == "__main__":
    main()
