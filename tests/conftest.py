"""What all tests share."""

from __future__ import annotations

import gc
import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.support.time_limit import begin, limit_coroutine, stopped

pytest_plugins = ["tests.support.servers"]

if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # Images of containers like to set it. But the tests start hundreds of processes, and where nothing keeps what was
    # compiled, each of them compiles all its modules again, which takes more than all the rest of its start.
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(Path(__file__).parents[1] / "build" / "bytecode")
    sys.dont_write_bytecode = False

# Of a machine that stands still for a moment, no example is too slow.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

#: Tests that start servers, in this process or others, that wait, or that try very many cases, the longest first, with about
#: how many seconds each takes on a quiet machine: left out of `make test-fast`.
_SLOW = {
    "tests/crash/": 30.0,
    "tests/clients/": 30.0,
    "tests/integration/server/test_openapi_conformance.py": 30.0,
    "sdks/go/tests/": 15.0,
    "sdks/java/tests/": 15.0,
    "integrations/terraform/tests/": 15.0,
    "tests/integration/server/test_overload.py": 15.0,
    "tests/native/": 15.0,
    "tests/integration/cluster/": 10.0,
    "test_what_a_release_stored_is_opened_read_and_fired": 4.0,
    "test_the_clusters_nodes_work_together": 12.0,
    "tests/e2e/": 3.0,
    "tests/conformance/test_cassandra.py": 0.5,
    "tests/integration/stores/test_cassandra_faults.py": 1.0,
    "test_commands_print_what_the_page_shows": 5.0,
    "sdks/typescript/tests/": 5.0,
    "tests/integration/test_wheel.py": 5.0,
    "tests/integration/cli/test_echo.py": 3.0,
    "tests/integration/cli/test_examples.py": 3.0,
    "tests/integration/cli/test_real_server.py": 3.0,
    "tests/integration/stores/test_shared_server.py": 5.0,
    "tests/integration/stores/test_damaged_rows_on_servers.py": 3.0,
    "tests/integration/stores/test_mongodb_faults.py": 2.0,
    "tests/conformance/test_mongodb.py": 0.5,
    "tests/integration/stores/test_readable_views.py": 3.0,
    "test_random_histories_match_the_memory_store": 5.0,
    "tests/integration/server/": 3.0,
    "tests/simulation/": 1.0,
    "tests/agent_simulation/": 1.0,
    "tests/properties/": 1.0,
    "tests/deploy/test_helm.py": 0.3,
    "tests/deploy/test_restores.py": 3.0,
    "sdks/python/tests/test_docs.py": 3.0,
    "sdks/python/tests/test_example.py": 3.0,
    "test_celery_tasks_are_moved": 20.0,
    "sdks/python/tests/test_migration_guides.py": 3.0,
    "tests/repo/test_alerts.py::test_every_alert_fires": 5.0,
    "tests/repo/test_alerts.py::test_alerts_fire_for": 1.0,
    "sdks/python/tests/test_killed_receiver.py": 3.0,
    "sdks/python/tests/test_clients.py": 3.0,
    "test_server_that_acknowledges_before_fsync_is_refused_if_durable": 3.0,
    "test_tls_with_a_verified_server": 2.0,
    "test_unresponsive_names_do_not_delay_others": 2.0,
    "test_pages_are_complete_and_stable_under_filters": 1.0,
    "tests/integration/cli/test_schedules.py": 0.7,
    "tests/unit/test_workers.py": 0.7,
    "tests/integration/http_client/test_http_client_local_faults.py": 0.5,
    "test_as_a_process": 0.5,
    "tests/integration/pages/": 0.3,
    "test_no_text_takes_quadratic_time": 0.2,
    "test_interrupted_search_finds_every_match_once": 0.1,
}
#: What `make test` leaves to `make test-all`: further databases, languages, pages and deployments. What remains has all that
#: the mutants need, and one of each journey: memory, SQLite and PostgreSQL, one kill of each kind, the pages' main ways.
_WIDE = (
    "sdks/go/tests/",
    "sdks/java/tests/",
    "integrations/terraform/tests/",
    "sdks/typescript/tests/",
    "sdks/python/tests/test_docs.py",
    "sdks/python/tests/test_migration_guides.py",
    "sdks/python/tests/test_killed_receiver.py",
    "tests/clients/",
    "tests/conformance/test_cassandra.py",
    "tests/conformance/test_dynamodb.py",
    "tests/conformance/test_mongodb.py",
    "tests/conformance/test_mysql.py",
    "WithSmallPages",
    "tests/crash/",
    "tests/deploy/",
    "tests/docs/",
    "tests/e2e/",
    "tests/integration/cli/test_echo.py",
    "tests/integration/cli/test_examples.py",
    "test_demo_of_service_calls_completes[nats and engine]",
    "test_demo_of_service_calls_completes[postgresql]",
    "tests/integration/cluster/",
    # These need MySQL.
    "test_a_database_that_hangs_delays_no_timer_and_no_stop",
    "tests/integration/stores/test_readable_views.py::test_mysql",
    "tests/integration/server/test_openapi_conformance.py",
    "tests/integration/server/test_overload.py",
    "tests/integration/stores/test_cassandra_faults.py",
    "tests/integration/stores/test_dynamodb_faults.py",
    "tests/integration/stores/test_dynamodb_lives.py",
    "tests/integration/stores/test_dynamodb_throttling.py",
    "tests/integration/stores/test_dynamodb_units.py",
    "tests/integration/stores/test_mongodb_faults.py",
    "tests/integration/stores/test_mysql_faults.py",
    "tests/integration/stores/test_mysql_values.py",
    "tests/integration/test_wheel.py",
    "tests/repo/test_alerts.py::test_every_alert_fires",
    "tests/integration/stores/test_mysql_plans.py",
    "test_guarantees_hold_on_many_nodes_with_flows",
    # `make test` plays the first hundred of the simulation's seeds, the first 50 of the agent's, and 2,000 of the window's.
    "test_guarantees_hold_under_faults[",
    "test_outcomes_are_correct_under_random_faults[50]",
    "test_outcomes_are_correct_under_random_faults[100]",
    "test_invariants_hold_after_every_step[2",
    "test_invariants_hold_after_every_step[3",
)
#: Of these, what `make test` runs all the same.
_ONE_OF_EACH = (
    "tests/crash/test_agent_sigkill.py::test_kills_lose_no_call_on_postgresql_with_nats",
    "tests/crash/test_agent_sigkill.py::test_kills_lose_no_call_with_the_timer_engine",
    "tests/crash/test_cluster_faults.py::test_a_killed_nodes_shards_are_taken_over",
    "tests/crash/test_cluster_faults.py::test_a_resumed_frozen_node_does_no_harm",
    "tests/crash/test_cluster_faults.py::test_a_rolling_restart_with_another_secret_fails_no_request",
    "tests/crash/test_cluster_partitions.py::test_a_node_cut_off_from_the_database_is_replaced_and_returns",
    "tests/crash/test_ledger_check.py",
    "tests/crash/test_sigkill.py",
    "tests/docs/test_pages.py::test_commands_print_what_the_page_shows[README.md]",
    "tests/e2e/test_first_minute.py",
    "tests/e2e/test_forms.py",
    "tests/e2e/test_schedules.py",
    "tests/integration/cluster/test_graceful_stop.py",
    "tests/integration/cluster/test_namespaces.py",
    "tests/integration/cluster/test_nodes.py",
    "tests/integration/cluster/test_two_owners.py",
)
#: Parameters that name a database whose tests are left out.
_WIDE_DATABASE = re.compile(r"[\[-](mysql|dynamodb|mongodb|cassandra)\b")
#: Fixtures of servers that a test starts: such tests are left out of `make test-fast`, too.
_SERVERS = frozenset(
    {
        "shared_postgresql", "postgresql", "shared_mysql", "mysql", "shared_nats", "nats", "shared_dynamodb", "dynamodb",
        "shared_mongodb", "mongodb", "shared_cassandra", "cassandra",
    }
)  # fmt: skip
_QUICK_S = 0.15
#: Tests that spend most of their time waiting for leases and elections, and leave the processor to others meanwhile.
_WAITING = ("tests/crash/", "tests/integration/cluster/")
_LEDGER = "tests/crash/test_ledger_check.py"
#: Modules whose tests share a server: each process that ran some of them would start it, and fill it, again. The ledger's
#: tests stay together because each uses all of a small machine: several at once would starve their databases.
_SHARE_A_SERVER = {
    _LEDGER,
    "sdks/go/tests/test_go.py",
    "sdks/java/tests/test_java_docs.py",
    "sdks/java/tests/test_java_example.py",
    "tests/e2e/test_bulk.py",
    "tests/e2e/test_calls.py",
    "tests/e2e/test_lists.py",
    "tests/e2e/test_long_lists.py",
    "tests/e2e/test_pages.py",
    "tests/e2e/test_timers.py",
    "tests/integration/cli/test_real_server.py",
    "tests/integration/cli/test_schedules.py",
    "tests/integration/server/test_agent_flow.py",
    "tests/integration/server/test_call_flows.py",
    "tests/integration/server/test_callback_responses.py",
    "tests/integration/server/test_limited_keys.py",
    "tests/integration/server/test_single_sign_on.py",
    "tests/integration/stores/test_postgresql_plans.py",
    "sdks/typescript/tests/test_typescript_docs.py",
    "sdks/typescript/tests/test_typescript_example.py",
    "sdks/typescript/tests/test_typescript_package.py",
    "tests/integration/test_wheel.py",
}


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A test that configures logging, as a server does, leaves nothing of it to the next one."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where tests are left out, their files are not read either: importing what they use takes as long as many a test, in
    each process."""
    place = collection_path.relative_to(config.rootpath).as_posix() + ("/" if collection_path.is_dir() else "")
    if config.option.markexpr == "not slow":
        return True if place in _SLOW else None
    if config.option.markexpr == "not wide":
        return True if place in _WIDE and not any(kept.startswith(place) for kept in _ONE_OF_EACH) else None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays until the end. Looking through all of it for garbage, again and again, takes a tenth of the
    time of collecting, and then some of the tests'."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the slow ones by where they stand. Where several processes share the tests, the long ones come first, so that
    at the end none of them has one left while the others have nothing to do."""
    for item in items:
        if _place(item) is not None or _starts_a_server(item):
            item.add_marker(pytest.mark.slow)
        if _is_wide(item.nodeid):
            item.add_marker(pytest.mark.wide)
    if hasattr(config, "workerinput"):
        items[:] = _in_order(items)


def _place(item: pytest.Item) -> str | None:
    nodeid = item.nodeid  # puts its parts together each time
    return next((part for part in _SLOW if part in nodeid), None)


def _is_wide(nodeid: str) -> bool:
    if _WIDE_DATABASE.search(nodeid):
        return True
    return any(part in nodeid for part in _WIDE) and not any(part in nodeid for part in _ONE_OF_EACH)


def _starts_a_server(item: pytest.Item) -> bool:
    """Parameters name a server that a fixture asks for by name."""
    fixtures = getattr(item, "fixturenames", ())
    return not _SERVERS.isdisjoint(fixtures) or re.search(r"[\[-](postgresql|mysql|nats)\b", item.name) is not None


def _seconds(item: pytest.Item) -> float:
    return _SLOW.get(_place(item) or "", _QUICK_S)


def _in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """The longest first, and those that wait spread over the first four fifths of the run: several of them at once would
    leave the processor idle, and those that compute, at once, would share it. The ledger's tests take minutes, one after
    another: they begin at once."""
    places = {place: number for number, place in enumerate((*_SLOW, None))}
    items = sorted(items, key=lambda item: places[_place(item)])
    ledger = [item for item in items if item.nodeid.startswith(_LEDGER)]
    items = [item for item in items if not item.nodeid.startswith(_LEDGER)]
    waiting = [item for item in items if item.nodeid.startswith(_WAITING)]
    computing = [item for item in items if not item.nodeid.startswith(_WAITING)]
    pace = 0.8 * sum(map(_seconds, computing)) / max(sum(map(_seconds, waiting)), 1.0)
    ordered: list[pytest.Item] = []
    begun_s = waited_s = 0.0
    for item in computing:
        while waiting and waited_s * pace <= begun_s:
            waited_s += _seconds(waiting[0])
            ordered.append(waiting.pop(0))
        begun_s += _seconds(item)
        ordered.append(item)
    return ledger + ordered + waiting


#: Of each module: how long its tests took, with their fixtures.
_took_s: Counter[str] = Counter()
_SLOWEST_SHOWN = 10


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the process that reports, whichever ran the test."""
    _took_s[report.nodeid.partition("::")[0]] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """After a run of many modules, shows which of them took most of it: whoever makes the tests slow shall see it."""
    if hasattr(config, "workerinput") or len(_took_s) <= _SLOWEST_SHOWN:
        return
    terminalreporter.section(f"slowest modules, of {sum(_took_s.values()):.0f} s of tests")
    for module, seconds in _took_s.most_common(_SLOWEST_SHOWN):
        terminalreporter.write_line(f"{seconds:7.1f} s  {module}")


class _Scheduler(LoadScopeScheduling):
    """Each free process takes the next test of the list, or the next module of `_SHARE_A_SERVER`."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return module if module in _SHARE_A_SERVER else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Where several processes share the tests."""
    return _Scheduler(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Its time begins with its fixtures."""
    begin(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Cancels the test's coroutine shortly before its time limit."""
    limit_coroutine(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """To describe a failure takes seconds on a busy machine. A time limit that ended meanwhile would end the whole run."""
    with stopped():
        return (yield)
