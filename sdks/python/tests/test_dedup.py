"""The work of a firing is done once, and its answer is kept, in SQLite and in PostgreSQL."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from datetime import datetime, timedelta, timezone

import psycopg
import pytest
from tests.support.postgresql import PostgresServer

from tocsin_client.receiver import Dedup, done, fail, reschedule_at, retry
from tocsin_client.testing import firing

TOMORROW = datetime(2027, 2, 1, tzinfo=timezone.utc)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def connect(request, tmp_path_factory):
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("dedup") / "app.db"
        yield lambda: sqlite3.connect(path)
        return
    server = PostgresServer()
    server.init()
    server.start()
    try:
        yield lambda: psycopg.connect(server.url())
    finally:
        server.remove()


@pytest.fixture
def dedup(connect):
    once = Dedup(connect)
    once.create_table()
    once.create_table()
    with contextlib.closing(connect()) as connection:
        connection.cursor().execute("DROP TABLE IF EXISTS work")
        connection.cursor().execute("DELETE FROM tocsin_firings")
        connection.cursor().execute("CREATE TABLE work (id TEXT)")
        connection.commit()
    return once


def working(answer):
    """Work that leaves a row."""

    def work(connection):
        connection.cursor().execute("INSERT INTO work VALUES ('x')")
        return answer() if callable(answer) else answer

    return work


def rows(connect):
    with contextlib.closing(connect()) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM work")
        return cursor.fetchone()[0]


@pytest.mark.parametrize("answer", [done(), reschedule_at(TOMORROW, {"n": 2})])
def test_a_repetition_gets_the_answer_of_the_first(dedup, connect, answer):
    given = firing()
    assert dedup.once(given, working(answer)) == answer
    assert dedup.once(given, working(done())) == answer
    assert rows(connect) == 1
    dedup.once(firing(), working(answer))
    assert rows(connect) == 2


def test_retry_fail_and_exceptions_roll_back(dedup, connect):
    given = firing()

    def defect():
        raise LookupError

    assert dedup.once(given, working(retry(3))) == retry(3)
    assert dedup.once(given, working(fail("no such account"))) == fail("no such account")
    with pytest.raises(LookupError):
        dedup.once(given, working(defect))
    with pytest.raises(TypeError):
        dedup.once(given, working(None))
    assert rows(connect) == 0
    assert dedup.once(given, working(done())) == done()
    assert rows(connect) == 1


def test_concurrent_callbacks_do_the_work_once(dedup, connect):
    given, answers = firing(), []
    begun, go_on = threading.Event(), threading.Event()

    def first():
        begun.set()
        go_on.wait(30)
        return reschedule_at(TOMORROW)

    threads = [threading.Thread(target=lambda: answers.append(dedup.once(given, working(first))))]
    threads[0].start()
    assert begun.wait(30)
    threads.append(threading.Thread(target=lambda: answers.append(dedup.once(given, working(done())))))
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert answers == [reschedule_at(TOMORROW)] * 2
    assert rows(connect) == 1


def test_forgets(dedup, connect):
    given = firing()
    dedup.once(given, working(done()))
    assert dedup.forget() == 0
    assert dedup.forget(timedelta(seconds=-5)) == 1
    dedup.once(given, working(done()))
    assert rows(connect) == 2


def test_refuses_autocommit(tmp_path):
    with pytest.raises(ValueError, match="autocommit"):
        Dedup(lambda: sqlite3.connect(tmp_path / "a.db", isolation_level=None)).create_table()


def test_refuses_a_table_that_is_no_name():
    with pytest.raises(ValueError, match="table"):
        Dedup(lambda: sqlite3.connect(":memory:"), table="a; DROP TABLE b")
