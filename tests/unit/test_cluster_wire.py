"""The messages between nodes: they round-trip, in an encoding that must not change by accident, across releases."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each
from tests.support.peers import TIMER

from tocsin.cluster import wire
from tocsin.cluster.handshake import Handshake
from tocsin.cluster.wire import (
    AskDestinations,
    AskFlows,
    CountFlows,
    DestinationsReported,
    FlowAnswers,
    FlowReports,
    FlowsCounted,
    FlowsFreed,
    Goodbye,
    LocateTimers,
    NamespacesRefreshed,
    OwnershipChanged,
    PeerError,
    PeerProtocolError,
    PeerReport,
    PeerWrite,
    PeerWrites,
    RefreshNamespaces,
    RelayedRequest,
    RelayedResponse,
    ReportFlows,
    ReportRequest,
    Tick,
    TimersLocated,
    WriteResult,
    WriteResults,
    decode_reply,
    decode_request,
    decode_result,
    decode_write,
    encode,
    encode_result,
    encode_write,
)
from tocsin.model import errors
from tocsin.model.condition import Condition, OnConflict, Outcome
from tocsin.model.debounce import Debounce, DebounceWindow
from tocsin.model.errors import FieldError, InvalidInput, RecordUndecodable, ShardUnavailable, TocsinError
from tocsin.model.job import RowFilter
from tocsin.model.retry import RetryPolicy
from tocsin.model.schedule import DefinitionChanges, Edit, Fire, Pause, Put, Refill, Resume, ScheduleChange
from tocsin.model.timer import Changes, CreateKey, RawBody, Timer, encode_record
from tocsin.ports.destinations import DestinationQuestion, DestinationReport
from tocsin.ports.flows import FlowAnswer, FlowGrant, FlowReport, KeyReport, RuleReport
from tocsin.ports.forward import FlowCounts, NodeReport, NodeVitals, ShardReport, Whereabouts, Write, WriteKind, Written
from tocsin.ports.quotas import QuotaUse

VECTORS = json.loads((Path(__file__).parent / "peer_vectors.json").read_text())

CONDITION = b'["keep",["aa","bb"]]'

#: One message of each type.
MESSAGES = {
    "ops": PeerWrites(7, 1_500, [
        PeerWrite(1, 1, 3, 4, b"u" * 16, "default", 9_000_000, encode_record(TIMER), True, 7),
        PeerWrite(2, 3, 0, 1, b"v" * 16, "é", 1, b"", only_if=b'{"created_before":5}'),
        PeerWrite(3, 1, 3, 4, b"u" * 16, "default", 9, encode_record(TIMER), True, 7, CONDITION),
    ]),
    "refresh": RefreshNamespaces(8),
    "refreshed": NamespacesRefreshed(8),
    "result of an attempt": PeerWrites(7, 1_500, [
        encode_write(
            Write(WriteKind.CONCLUDE, 3, b"w" * 16, "default", TIMER, None, 0, 7, 1_700_000_000_000_000, b"g" * 32),
            3, 4, 5,
        ),
    ]),
    "ask": ReportRequest(5),
    "look": OwnershipChanged(),
    "locate": LocateTimers(8, [(3, b"u" * 16), (0, b"v" * 16)]),
    "located": TimersLocated(8, [Whereabouts("window", "unsent", "http://x:80", 2, 1_700_000_000_000_000, 5), None]),
    "http": RelayedRequest(6, "GET", b"/api/x?y=1", [(b"a", b"b")], b"body", "5e884898da28", "192.0.2.7"),
    "tick": Tick(2**40),
    "answers": WriteResults([
        WriteResult(1, 77, encode_record(TIMER)), WriteResult(2),
        WriteResult(3, failure=PeerError("InvalidInput", "m", [("p", "r")])),
        WriteResult(4, 78, firing="3-1a"), WriteResult(5, 79, encode_record(TIMER), outcome=Outcome.REPLAYED),
    ]),
    "report": PeerReport(
        5, NodeReport(
            "0.1.0", False, "lease", True, [ShardReport(1, 2, 3, 4, None, 6)], 5 << 30, 1_700_000_000_000_000,
            NodeVitals(60, 0.5, None, 1.5, 0.25, None, 0.5, 2.25, 3, 4, 5, "out", 9),
            {"shop": QuotaUse(7, 1_700_000_000_000_000, 1.5), "é": QuotaUse(None, 0, 0.0)},
        )
    ),
    "report flows": ReportFlows(4, [
        FlowReport(b"i" * 16, 3, 7, 2, [RuleReport("é", "customer:", 1, 3, 9, [KeyReport("customer:1", 2, 1, 4, 5, 6)])]),
        FlowReport(b"i" * 16, 4, 7, 2, []),
    ]),
    "flow answers": FlowAnswers(4, [
        FlowAnswer(3, 7, 2, [FlowGrant("é", "customer:", "customer:1", 2, 1_500)]), FlowAnswer(4, 7, 2, [], False),
    ]),
    "ask flows": AskFlows(5, b"i" * 16, [(3, 7), (4, 8)]),
    "flow reports": FlowReports(5, [FlowReport(b"j" * 16, 3, 7, 1, [RuleReport("n", "", 1, 0, 0, [])])]),
    "flows freed": FlowsFreed([3, 4]),
    "count flows": CountFlows(6, "é"),
    "flows counted": FlowsCounted(6, {"customer:": FlowCounts(2, 17)}),
    "ask destinations": AskDestinations(7, DestinationQuestion(["https://shop.example:443"], 100, probe=True)),
    "destinations reported": DestinationsReported(
        7,
        [
            DestinationReport(
                "https://shop.example:443", 1, 256, 120, 40, 39, "open", 10_000_000, "HTTP 503", 1_800_000_000_000_000, 5
            )
        ],
    ),
    "http answer": RelayedResponse(6, 200, [(b"a", b"b")], b"body"),
    "bye": Goodbye(9),
}  # fmt: skip
TO_OWNER = (
    "ops", "result of an attempt", "ask", "look", "locate", "refresh", "http", "report flows", "ask flows", "flows freed",
    "count flows", "ask destinations",
)  # fmt: skip


def read(name: str, payload: bytes) -> object:
    return decode_request(payload) if name in TO_OWNER else decode_reply(payload)


@each("kind", (WriteKind.UPDATE, WriteKind.DELETE, WriteKind.SCHEDULE))
def test_writes_of_jobs_keep_their_filter(kind: WriteKind) -> None:
    changes = Changes(shift_us=-5) if kind is WriteKind.UPDATE else None
    change = Pause() if kind is WriteKind.SCHEDULE else None
    row_filter = RowFilter(9, ("é",), "t-", "x/", "500", None, 7, updated_before=9)
    write = Write(kind, 3, b"w" * 16, "default", None, changes, 5, 7, change=change, only_if=row_filter)
    read = decode_write(encode_write(write, 3, 4, 5), 5)
    # The changes are of a type of their own, which refuses what it does not know.
    assert read._replace(changes=changes) == write
    assert read.changes is None or read.changes.shift_us == -5
    with pytest.raises(RecordUndecodable):
        decode_write(PeerWrite(2, kind, 0, 1, b"v" * 16, "n", 1, b"{}", only_if=b"7"), 5)


@each("name", MESSAGES)
def test_the_encoding_of_messages_is_stable(name: str) -> None:
    """Nodes of another release read and write these bytes: a change here breaks rolling restarts."""
    assert encode(MESSAGES[name]).hex() == VECTORS["messages"][name]
    assert read(name, bytes.fromhex(VECTORS["messages"][name])) == MESSAGES[name]


def test_every_message_type_has_a_vector() -> None:
    assert {
        type(message).__struct_config__.tag for message in MESSAGES.values()
    } == wire._REQUEST_TAGS | wire._REPLY_TAGS
    assert VECTORS["messages"].keys() == MESSAGES.keys()


def test_the_encoding_of_the_handshake_is_stable() -> None:
    caller = Handshake("correct horse battery", b"o" * 16, b"c" * 32)
    called = Handshake("correct horse battery", b"t" * 16, b"s" * 32)
    hello = called.hello()
    proven = caller.prove(hello, b"t" * 16)
    assert proven is not None
    proof, welcome, seals = proven
    reported = {"hello": hello, "proof": proof, "welcome": welcome}
    reported |= {
        f"frame {number} {name}": seal.of(b"frame") for name, seal in seals._asdict().items() for number in (0, 1)
    }
    assert {name: part.hex() for name, part in reported.items()} == VECTORS["handshake"]


# ---------------------------------------------------------------------- other releases


@each("name", MESSAGES)
def test_unknown_fields_are_ignored(name: str) -> None:
    longer = [*msgspec.msgpack.decode(encode(MESSAGES[name])), "new"]
    assert read(name, msgspec.msgpack.encode(longer)) == MESSAGES[name]


def test_unknown_nested_fields_are_ignored() -> None:
    report = msgspec.msgpack.decode(encode(MESSAGES["report"]))
    report[2][4][0].append("more of a shard")
    report[2].append("more of a node")
    assert decode_reply(msgspec.msgpack.encode(report)) == MESSAGES["report"]
    ops = msgspec.msgpack.decode(encode(MESSAGES["ops"]))
    ops[3][0].append("more of a write")
    assert decode_request(msgspec.msgpack.encode(ops)) == MESSAGES["ops"]


def test_a_message_with_an_unknown_tag_is_ignored() -> None:
    for payload in (msgspec.msgpack.encode(["zz", 1, {"x": []}]), msgspec.msgpack.encode(["zz"])):
        assert decode_request(payload) is None
        assert decode_reply(payload) is None


@each(
    "payload",
    [
        b"",
        b"\xc1",
        b"\x91",
        b"\x90",
        msgspec.msgpack.encode(["o"]),
        msgspec.msgpack.encode(["t", "x"]),
        b"\x80",
        msgspec.msgpack.encode([1]),
        encode(MESSAGES["ops"])[:-1],
        b"\x91\xa1\xff",
    ],
)
def test_an_undecodable_message_is_a_protocol_error(payload: bytes) -> None:
    for reader in (decode_request, decode_reply):
        try:
            message = reader(payload)
        except PeerProtocolError:
            continue
        # A message of the other direction.
        assert message is None


def test_a_write_of_an_unknown_kind_is_refused_alone() -> None:
    op = PeerWrite(1, 9, 3, 4, b"u" * 16, "default", 5, b"")
    with pytest.raises(RecordUndecodable):
        decode_write(op, 1)
    newer = PeerWrite(1, int(WriteKind.UPDATE), 3, 4, b"u" * 16, "default", 5, b'{"execute_at":5,"jitter":7}')
    with pytest.raises(RecordUndecodable, match="jitter"):
        decode_write(newer, 1)
    too_new = PeerWrite(1, int(WriteKind.CREATE), 3, 4, b"u" * 16, "default", 5, b'{"v":99,"x":1}')
    with pytest.raises(RecordUndecodable, match="99"):
        decode_write(too_new, 1)
    for condition in (b"[]x", b'["overwrite",null]'):
        with pytest.raises(RecordUndecodable):
            decode_write(PeerWrite(1, 1, 3, 4, b"u" * 16, "default", 5, encode_record(TIMER), condition=condition), 1)
    for body in (b"", b"\xff", b"[]"):
        with pytest.raises(RecordUndecodable):
            decode_write(PeerWrite(1, int(WriteKind.UPDATE), 3, 4, b"u" * 16, "default", 5, body), 1)


def test_an_unknown_error_is_an_unknown_outcome() -> None:
    for kind in ("SomethingNew", "dataclass", "FieldError", "__name__"):
        reported = decode_result(WriteResult(1, failure=PeerError(kind, "why", [])))
        assert type(reported) is ShardUnavailable
        assert "why" in str(reported)


# ---------------------------------------------------------------------- round trips

INTEGERS = st.integers(-(2**62), 2**62)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PAYLOADS = st.recursive(
    st.none() | st.booleans() | INTEGERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
).map(lambda value: msgspec.Raw(msgspec.json.encode(value)))
RETRIES = st.none() | st.builds(
    RetryPolicy, max_attempts=st.integers(1, 1_000), initial_interval_us=st.integers(1, 2**40),
    max_interval_us=st.integers(1, 2**40),
)  # fmt: skip
HEADERS = st.none() | st.dictionaries(TEXTS, TEXTS, max_size=3)
BODIES = (
    st.builds(RawBody, TEXTS, text=TEXTS)
    | st.builds(RawBody, TEXTS, json=PAYLOADS)
    | st.builds(RawBody, TEXTS, base64=st.binary(max_size=20).map(lambda data: base64.b64encode(data).decode()))
)
TAGS = st.lists(TEXTS, max_size=3).map(tuple)
TIMERS = st.builds(
    Timer, TEXTS, TEXTS, INTEGERS, TEXTS, INTEGERS, INTEGERS, payload=PAYLOADS, method=TEXTS, headers=HEADERS,
    retry=RETRIES, timeout_us=INTEGERS, tags=TAGS, firing=TEXTS, attempts=INTEGERS, last_error=st.none() | TEXTS,
    body=st.none() | BODIES,
)  # fmt: skip
UNSET = st.just(msgspec.UNSET)
CHANGES = st.builds(
    Changes, execute_at=UNSET | INTEGERS, url=UNSET | TEXTS, payload=UNSET | PAYLOADS, retry=UNSET | RETRIES,
    timeout_us=UNSET | INTEGERS, method=UNSET | TEXTS, headers=UNSET | HEADERS, tags=UNSET | TAGS, body=UNSET | BODIES,
)  # fmt: skip
UUIDS = st.binary(min_size=16, max_size=16)


def parts(value: Timer | Changes | None) -> dict[str, object] | None:
    """The fields of a message, raw JSON as bytes."""
    if value is None:
        return None
    fields = {name: getattr(value, name) for name in Timer.__struct_fields__ if hasattr(value, name)}
    return {name: bytes(part) if isinstance(part, msgspec.Raw) else part for name, part in fields.items()}


@given(
    kind=st.sampled_from(sorted(set(WriteKind) - {WriteKind.SCHEDULE})),
    shard=st.integers(0, 65_535), uuid=UUIDS, namespace=TEXTS, timer=TIMERS,
    changes=CHANGES, version=st.integers(0, 2**62), deadline=INTEGERS,
)  # fmt: skip
def test_a_write_round_trips(kind, shard, uuid, namespace, timer, changes, version, deadline) -> None:
    write = Write(
        kind, shard, uuid, namespace,
        timer if kind in (WriteKind.CREATE, WriteKind.CONCLUDE) else None,
        changes if kind in (WriteKind.UPDATE, WriteKind.REPLAY) else None, deadline, version % 7,
        -version if kind is WriteKind.CONCLUDE else 0,
        b"g" * 32 if kind is WriteKind.CONCLUDE or (kind is WriteKind.REPLAY and version % 2) else b"",
    )  # fmt: skip
    message = decode_request(encode(PeerWrites(1, 2, [encode_write(write, 3, version, 4)])))
    assert isinstance(message, PeerWrites)
    came = decode_write(message.ops[0], deadline)
    assert message.ops[0].epoch == version
    assert came._replace(timer=None, changes=None) == write._replace(timer=None, changes=None)
    assert parts(came.timer) == parts(write.timer)
    assert parts(came.changes) == parts(write.changes)


@given(timer=TIMERS, changes=CHANGES, other=st.sampled_from([Pause(), Resume(), Fire(), Refill(1, 2)]))
def test_a_change_of_a_schedule_round_trips(timer: Timer, changes: Changes, other: ScheduleChange) -> None:
    edit = Edit(DefinitionChanges(cron="@daily", end_at=None))
    for change, sent, changed in ((Put(), timer, None), (edit, None, changes), (other, None, None)):
        write = Write(WriteKind.SCHEDULE, 1, b"u" * 16, "n", sent, changed, 5, change=change)
        message = decode_request(encode(PeerWrites(1, 2, [encode_write(write, 3, 4, 5)])))
        assert isinstance(message, PeerWrites)
        came = decode_write(message.ops[0], 5)
        assert came.change == change
        assert (parts(came.timer), parts(came.changes)) == (parts(sent), parts(changed))


@given(
    timer=TIMERS, on_conflict=st.sampled_from(OnConflict), key=st.none() | st.builds(CreateKey, TEXTS, TEXTS),
    debounce=st.none() | st.builds(Debounce, INTEGERS, INTEGERS, st.integers(0, 100)),
)  # fmt: skip
def test_a_condition_round_trips(
    timer: Timer, on_conflict: OnConflict, key: CreateKey | None, debounce: Debounce | None
) -> None:
    condition = Condition(on_conflict, key, debounce=debounce)
    write = Write(WriteKind.CREATE, 1, b"u" * 16, "n", timer, None, 5, condition=condition)
    message = decode_request(encode(PeerWrites(1, 2, [encode_write(write, 3, 4, 5)])))
    assert isinstance(message, PeerWrites)
    assert decode_write(message.ops[0], 5).condition == condition


@given(timer=TIMERS, at=INTEGERS, outcome=st.sampled_from(Outcome))
def test_a_found_timer_round_trips(timer: Timer, at: int, outcome: Outcome) -> None:
    answer = encode_result(1, Written(timer, at, outcome), brief=outcome is not Outcome.CREATED)
    message = decode_reply(encode(WriteResults([answer])))
    assert isinstance(message, WriteResults)
    came = decode_result(message.answers[0], timer)
    assert isinstance(came, Written)
    assert (came.next_attempt_at, came.outcome, parts(came.timer)) == (at, outcome, parts(timer))


@given(timer=TIMERS, sent=TIMERS, window=st.builds(DebounceWindow, INTEGERS, INTEGERS, INTEGERS, INTEGERS))
def test_what_a_debounced_create_has_made_is_returned_whole(timer: Timer, sent: Timer, window: DebounceWindow) -> None:
    timer.debounced = window
    answer = encode_result(1, Written(timer, 7), brief=True)
    message = decode_reply(encode(WriteResults([answer])))
    assert isinstance(message, WriteResults)
    came = decode_result(message.answers[0], sent)
    assert isinstance(came, Written)
    assert parts(came.timer) == parts(timer)


@given(timer=TIMERS, at=INTEGERS)
def test_a_written_timer_round_trips(timer: Timer, at: int) -> None:
    message = decode_reply(encode(WriteResults([encode_result(1, Written(timer, at))])))
    assert isinstance(message, WriteResults)
    came = decode_result(message.answers[0])
    assert isinstance(came, Written)
    assert (came.next_attempt_at, parts(came.timer)) == (at, parts(timer))


@given(timer=TIMERS, at=INTEGERS, firing=st.text(min_size=1))
def test_a_brief_result_carries_what_the_owner_added(timer: Timer, at: int, firing: str) -> None:
    written = msgspec.structs.replace(timer, firing=firing)
    answer = encode_result(1, Written(written, at), brief=True)
    assert not answer.record
    message = decode_reply(encode(WriteResults([answer])))
    assert isinstance(message, WriteResults)
    came = decode_result(message.answers[0], timer)
    assert isinstance(came, Written)
    assert (came.next_attempt_at, parts(came.timer)) == (at, parts(written))


def every_error() -> list[type[TocsinError]]:
    found, left = [], [TocsinError]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        if kind.__module__ == errors.__name__:
            found.append(kind)
    return found


@each("kind", every_error())
def test_every_error_round_trips(kind: type[TocsinError]) -> None:
    error = (
        kind(FieldError("a.b", "is bad"), FieldError("", "is worse")) if issubclass(kind, InvalidInput) else kind("why")
    )
    message = decode_reply(encode(WriteResults([encode_result(1, error)])))
    assert isinstance(message, WriteResults)
    came = decode_result(message.answers[0])
    assert (type(came), str(came)) == (kind, str(error))
    assert getattr(came, "errors", None) == getattr(error, "errors", None)


def test_the_result_of_a_delete_is_empty() -> None:
    assert decode_result(encode_result(1, None)) is None
