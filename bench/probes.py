"""`python -m bench.probes serve …`: `tocsin serve` with a meter around the functions of each stage (STAGES).

The program is unchanged: its functions are replaced by metered ones before the server starts. A stage's share is what its
functions use themselves, without metered functions that they call. Commands come by standard input, one per line: `time` and
`blocks` start over and measure CPU time or memory blocks, `read` prints the totals as one line of JSON.

Reading a thread's CPU clock costs about as much as a short stage. This cost is measured at the start and subtracted, from
the stages and from the total.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import json
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any

#: The functions of each stage, as `module:name`. `()` after a name: the function that it returns.
STAGES: dict[str, tuple[str, ...]] = {
    "parse": (
        "tocsin.web.api.protocol:ApiProtocol.data_received",
        "tocsin.web.api.guard:GuardedProtocol.data_received",
        "uvicorn.protocols.http.httptools_impl:RequestResponseCycle.run_asgi",
    ),
    "gate": ("tocsin.web.api.app:Api.handle", "tocsin.web.api.app:Api._serve"),
    "decode": ("tocsin.web.http.reading:JsonReader.read",),
    "validate": (
        "tocsin.web.api.timers:TimerHandlers._timer",
        "tocsin.web.api.timers:TimerHandlers._accept",
        "tocsin.web.http.convert:RequestParser.changes",
        "tocsin.web.http.convert:RequestParser.name",
        "tocsin.web.http.convert:RequestParser.list_request",
    ),
    "accept": (
        "tocsin.timers.creating:Creating.begin",
        "tocsin.timers.creating:Creating.many",
        "tocsin.timers.service:TimerService.update",
        "tocsin.timers.service:TimerService.delete",
        "tocsin.timers.writing:Writes.accept",
        "tocsin.timers.engine.parts:Part.operations",
        "tocsin.timers.engine.assembly:Assembly.batch",
    ),
    "encode": (
        "tocsin.model.timer:encode_record",
        "tocsin.timers.engine.rows:stored",
        "tocsin.timers.engine.parts:Part.rows",
    ),
    "read": (
        "tocsin.timers.service:TimerService.list",
        "tocsin.timers.engine.loader:Loader._load_pages",
        *(
            f"tocsin.stores.{store}.{name}"
            for store in ("sqlite", "postgresql", "mysql")
            for name in ("reads:load", "reads:fetch", "lists:list_rows")
        ),
    ),
    "statement": tuple(f"tocsin.stores.{store}.writes:apply" for store in ("sqlite", "postgresql", "mysql")),
    "transaction": ("tocsin.sql.threads:Writer._write_together", "tocsin.sql.pool:Pool._work"),
    "commit": ("tocsin.timers.engine.committer:CommitLane.run", "tocsin.sql.threads:_settle"),
    "answer": (
        "tocsin.timers.engine.rows:WriteOp.answer",
        "tocsin.timers.engine.parts:Part.answer",
        "tocsin.timers.writing:_ForwardedWrite._resolved",
        "tocsin.web.api.timers:TimerHandlers.create_batch",
        "tocsin.web.http.convert:timer_answer",
        "tocsin.web.api.app:Api.response",
        "uvicorn.protocols.http.httptools_impl:RequestResponseCycle.send",
    ),
    "forward": (
        "tocsin.cluster.router:Router.forward",
        "tocsin.cluster.link:PeerLink._flush",
        "tocsin.cluster.session:PeerSession._flush",
        "tocsin.cluster.stream:PeerConnection.data_received",
    ),
    "dispatch": (
        "tocsin.timers.engine.alarm:Alarm._on_wake_up",
        "tocsin.timers.engine.dispatcher:Dispatcher._dispatch_due_now",
    ),
    "invoke": ("tocsin.http_client.http:HttpCaller.invoke",),
    "receive": ("tocsin.http_client.connection:Connection.data_received",),
    "result": ("tocsin.timers.engine.attempt:Attempt.ended",),
    "observe": ("tocsin.ports.observer:fan_out()",),
    "garbage collection": (),
}
_CALIBRATION_CALLS = 20_000

Function = Callable[..., Any]


class _Total:
    """What the calls of one stage in one thread have used: in their own code, and in how many calls and calls within them."""

    __slots__ = ("calls", "inner_calls", "used")

    def __init__(self) -> None:
        self.used = self.calls = self.inner_calls = 0


class _Thread(threading.local):
    """The stages under way in this thread, each with what metered calls within it used and how many they were; its totals."""

    def __init__(self) -> None:
        self.open: list[list[int]] = []
        self.totals: dict[str, _Total] = {stage: _Total() for stage in STAGES}
        _totals[threading.get_ident()] = self.totals


_totals: dict[int, dict[str, _Total]] = {}
_thread = _Thread()
_meter: Callable[[], int] = time.thread_time_ns
_cpu_ns_before: dict[int, int] = {}
#: What a metered call adds to its own stage, and to the one around it: nanoseconds.
_cost_inside_ns = _cost_around_ns = 0.0


def _begin() -> int:
    _thread.open.append([0, 0])
    return _meter()


def _end(stage: str, began: int) -> None:
    used = _meter() - began
    thread = _thread
    inner, inner_calls = thread.open.pop()
    total = thread.totals[stage]
    total.used += used - inner
    total.calls += 1
    total.inner_calls += inner_calls
    if thread.open:
        around = thread.open[-1]
        around[0] += used
        around[1] += 1


class _Steps:
    """A coroutine of a stage, each step of which is metered."""

    def __init__(self, stage: str, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._stage = stage
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        step: Function = self._coroutine.send
        sent: Any = None
        while True:
            began = _begin()
            try:
                yielded = step(sent)
            except StopIteration as stopped:
                return stopped.value
            finally:
                _end(self._stage, began)
            try:
                sent = yield yielded
                step = self._coroutine.send
            except BaseException as error:  # noqa: BLE001 -- the coroutine decides what it means
                sent, step = error, self._coroutine.throw


def metered(stage: str, function: Function) -> Function:
    """The function, whose use is added to the stage's total."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def steps(*args: Any, **options: Any) -> Any:
            return await _Steps(stage, function(*args, **options))

        return steps

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        began = _begin()
        try:
            return function(*args, **options)
        finally:
            _end(stage, began)

    return call


def functions() -> Iterator[tuple[str, str, Any, str]]:
    """The functions of all stages: stage, name in STAGES, and where they are. Raises AttributeError for a name that the
    program no longer has."""
    for stage, names in STAGES.items():
        for name in names:
            module_name, _, path = name.removesuffix("()").partition(":")
            *owners, last = path.split(".")
            owner = functools.reduce(getattr, owners, importlib.import_module(module_name))
            inspect.getattr_static(owner, last)
            yield stage, name, owner, last


def install() -> None:
    """Replaces the functions of all stages, also where other modules have imported them."""
    for stage, name, owner, last in list(functions()):
        function = inspect.getattr_static(owner, last)
        replaced = _factory(stage, function) if name.endswith("()") else metered(stage, function)
        setattr(owner, last, replaced)
        for module in list(sys.modules.values()) if inspect.ismodule(owner) else ():
            if getattr(module, "__name__", "").startswith("tocsin"):
                for known in [key for key, value in vars(module).items() if value is function]:
                    setattr(module, known, replaced)


def _factory(stage: str, make: Function) -> Function:
    return functools.wraps(make)(lambda *args, **options: metered(stage, make(*args, **options)))


def _collecting(phase: str, _: dict[str, int]) -> None:
    if phase == "start":
        _collections.append(_begin())
    else:
        _end("garbage collection", _collections.pop())


_collections: list[int] = []


def calibrate() -> None:
    """Measures what a metered call of an empty function costs."""
    global _cost_inside_ns, _cost_around_ns
    empty = metered("gate", int)
    around = metered("parse", lambda: [empty() for _ in range(_CALIBRATION_CALLS)])
    plain = metered("decode", lambda: [0 for _ in range(_CALIBRATION_CALLS)])
    _start_over()
    around()
    plain()
    bare_ns = _thread.totals["decode"].used / _CALIBRATION_CALLS
    _cost_inside_ns = _thread.totals["gate"].used / _CALIBRATION_CALLS - bare_ns
    _cost_around_ns = _thread.totals["parse"].used / _CALIBRATION_CALLS


def _cpu_ns() -> dict[int, int]:
    """CPU time of each thread, and of the whole process as number 0."""
    threads = {
        each.ident: time.clock_gettime_ns(time.pthread_getcpuclockid(each.ident))
        for each in threading.enumerate()
        if each.ident is not None
    }
    return threads | {0: time.process_time_ns()}


def _start_over() -> None:
    global _cpu_ns_before
    for totals in list(_totals.values()):
        for total in totals.values():
            total.used = total.calls = total.inner_calls = 0
    _cpu_ns_before = _cpu_ns()


def _report() -> dict[str, Any]:
    """What each stage has used since the start, and the CPU seconds of the process and of its event loop beyond the stages,
    without the meter's own."""
    timed, now, main = _meter is time.thread_time_ns, _cpu_ns(), threading.main_thread().ident
    inside, outside = (_cost_inside_ns, _cost_around_ns) if timed else (0.0, 0.0)
    stages, calls = dict.fromkeys(STAGES, 0.0), dict.fromkeys(STAGES, 0)
    in_loop = metering = metering_in_loop = 0.0
    for thread, totals in list(_totals.items()):
        for stage, total in totals.items():
            used = total.used - total.calls * inside - total.inner_calls * outside
            stages[stage] += used
            calls[stage] += total.calls
            metering += total.calls * (inside + outside)
            if thread == main:
                in_loop += used
                metering_in_loop += total.calls * (inside + outside)
    whole = now[0] - _cpu_ns_before[0] - metering
    loop = now[main or 0] - _cpu_ns_before.get(main or 0, 0) - metering_in_loop
    rest_of_loop = loop - in_loop
    return {
        "stages": stages,
        "calls": calls,
        "total": whole,
        "rest of the event loop": rest_of_loop,
        "rest of other threads": whole - sum(stages.values()) - rest_of_loop,
        "meter": metering,
    }


def _obey() -> None:
    global _meter
    for line in sys.stdin:
        if line.strip() == "read":
            print(json.dumps(_report()), flush=True)
            continue
        _meter = sys.getallocatedblocks if line.strip() == "blocks" else time.thread_time_ns
        _start_over()
        print("{}", flush=True)


def main() -> None:
    """Runs the command `tocsin` with meters."""
    app = importlib.import_module("tocsin.cli.app")
    importlib.import_module("tocsin.server.node")
    calibrate()
    install()
    gc.callbacks.append(_collecting)
    threading.Thread(target=_obey, daemon=True).start()
    app.main()


if __name__ == "__main__":
    main()
