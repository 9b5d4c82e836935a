"""The pages' commands run, and print what the pages show."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.docs.blocks import ROOT, SHELLS, blocks_of, missing_lines, pages
from tests.docs.machines import MACHINES, NOT_RUN, NOT_TRIED, TRIED, USUAL
from tests.docs.reading import in_namespaces, reason_not_to_run
from tests.support.cases import each
from tests.support.cassandra import CassandraServer
from tests.support.dynamodb import DynamoServer
from tests.support.mongodb import MongoServer
from tests.support.mysql import MysqlServer
from tests.support.nats import NatsServer
from tests.support.needs import lacking
from tests.support.postgresql import PostgresServer

#: Those of runbooks are run by tests/integration/server/test_runbooks.py, each once for all pages.
RUN = [
    page
    for page in pages()
    if not page.startswith("docs/runbooks/")
    and any(block.language in SHELLS and not reason_not_to_run(page, block) for block in blocks_of(page))
]


@pytest.fixture(scope="session")
def namespaces():
    """Skips the test where the system allows no namespaces."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--net", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        lacking("namespaces", "the commands of the pages are typed in namespaces; unshare and ip are needed")
    if (tried := subprocess.run(command, capture_output=True, text=True, check=False)).returncode:
        lacking("namespaces", f"the system grants none: {tried.stderr.strip()}")
    for program in ("curl", "sqlite3"):
        if shutil.which(program) is None:
            lacking(program, "pages use it")


def require_servers(machine):
    """Skips the test where the machine lacks a server that the page needs."""
    if machine.postgresql:
        PostgresServer().remove()
    if machine.mysql:
        MysqlServer().remove()
    if machine.dynamodb:
        DynamoServer().remove()
    if machine.cassandra:
        CassandraServer().remove()
    if machine.mongodb:
        MongoServer().remove()
    if machine.nats:
        NatsServer().remove()


# A page starts up to ten servers, one after another; here it only has to end at all.
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", RUN)
def test_commands_print_what_the_page_shows(page, namespaces):
    require_servers(MACHINES.get(page, USUAL))
    code, transcript = in_namespaces(page)
    assert code == 0, transcript[-20_000:]


@each("page", pages())
def test_every_block_is_of_a_known_kind(page):
    assert {block.language for block in blocks_of(page)} <= SHELLS | set(TRIED) | set(NOT_TRIED)


def unindented(text):
    return "\n".join(line.strip() for line in text.strip().splitlines())


def test_the_tutorial_of_orders_shows_parts_of_the_examples():
    orders = ROOT / "examples" / "orders"
    sources = ("python/orders.py", "typescript/src/orders.ts", "go/orders.go", "java/src/main/java/Orders.java")
    example = "\n".join(unindented((orders / source).read_text()) for source in sources)
    shown = [block.text for block in blocks_of("docs/tutorial/order-reminder.md") if block.language not in {"", "sh"}]
    assert len(shown) == len(sources)
    assert [part for part in shown if unindented(part) not in example] == []


def test_the_tutorial_of_a_store_shows_parts_of_the_example():
    example = "\n".join(unindented(path.read_text()) for path in (ROOT / "examples" / "own_store").glob("*.py"))
    blocks = [block.text for block in blocks_of("docs/tutorial/your-own-store.md") if block.language == "python"]
    parts = [unindented(part) for block in blocks for part in block.split("\n\n\n")]
    assert parts
    assert [part for part in parts if part not in example] == []


def test_lists_of_pages_match_existing_pages():
    for page, reasons in NOT_RUN.items():
        assert [word for word in reasons if not any(word in block.text for block in blocks_of(page))] == []
    assert set(MACHINES) <= set(RUN)


def test_shown_output_matches_except_for_variable_parts():
    printed = "Tocsin serves on http://127.0.0.1:8080. Stop with Ctrl-C.\n12:00:01  n/tea  +3.1 ms  attempt 1\n"
    assert missing_lines("12:34:56 n/tea +1,000.0 ms attempt 1\n", printed) == []
    assert missing_lines("Tocsin serves on … Ctrl-C.\n", printed) == []
    assert missing_lines("12:34:56 n/tea +1.0 ms attempt 2\n", printed) == ["12:34:56 n/tea +1.0 ms attempt 2"]
