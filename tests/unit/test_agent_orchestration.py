"""Orchestration's handlers and watchdog over tables in memory: batches, idempotency, causation, conflicts, retention."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from tests.support.agent_memory import MemoryServiceCalls, MemoryTables

from tocsin.model.errors import StoreUnavailable
from tocsin.model.failure import split_failure
from tocsin.model.hooks import Hook, Hooks
from tocsin.model.ids import Uuid7Source
from tocsin.model.job import RowFilter
from tocsin.ports.bus import Envelope, InvalidMessage
from tocsin.service_calls.background import AgentContext, Wakeup
from tocsin.service_calls.events import (
    AgentEvent,
    AgentRowsPurged,
    AgentStepFailed,
    CallRescued,
    CommandHandled,
    ServiceCallChanged,
)
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import (
    CallKey,
    CallStatus,
    CommandAccepted,
    CommandRefused,
    DeleteServiceCall,
    DismissFailure,
    DueTimeReached,
    ErrorMeta,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionStarted,
    ExecutionSucceeded,
    Instant,
    JobFilter,
    Message,
    Registry,
    RequestSpec,
    ResponseMeta,
    RetryServiceCall,
    SubmitServiceCall,
    TagServiceCall,
    UntagServiceCall,
)
from tocsin.service_calls.orchestration.handlers import Orchestration, Watchdog
from tocsin.service_calls.orchestration.unit_of_work import ChangedMeanwhile
from tocsin.service_calls.ports import ServiceCall
from tocsin.testing.clock import EPOCH_US, FakeClock

SECOND = 1_000_000
SPEC = RequestSpec("GET", "http://service/x")
OK = ResponseMeta(200, {}, "", 1.0)
OOPS = ErrorMeta("HTTP_STATUS", "the service answered 500")
DOWN = ResponseMeta(500, {}, "", 1.0)


class OneDelivery:
    """A delivery that records how it was settled."""

    def __init__(self, envelope: Envelope) -> None:
        self.envelope = envelope
        self.attempt = 1
        self.failed: Exception | None = None

    def keep(self) -> None:
        raise AssertionError("orchestration keeps nothing")

    def ack(self) -> None:
        raise AssertionError("orchestration returns when all is done")

    def fail(self, error: Exception) -> None:
        self.failed = error


class World:
    """Orchestration with its tables, and everything it receives and sends."""

    def __init__(self, limits: AgentLimits | None = None) -> None:
        self.clock = FakeClock()
        self.limits = limits or AgentLimits()
        self.new_id = Uuid7Source(self.clock.now_us)
        self.registry = Registry(self.new_id, self.clock.now_us)
        self.tables = MemoryTables()
        self.events: list[AgentEvent] = []
        self.store = MemoryServiceCalls(self.tables)
        context = AgentContext(self.registry, self.clock, self.limits, self.events.append)
        self.orchestration = Orchestration(self.store, context)
        self.watchdog = Watchdog(self.store, context)
        self.tenant = self.new_id()

    def key(self, tenant: str | None = None) -> CallKey:
        return CallKey(tenant or self.tenant, self.new_id())

    def seal(self, key: CallKey, message: Message, correlation_id: str = "corr", cause: str | None = None) -> Envelope:
        return self.registry.seal(message, tenant_id=key.tenant_id, correlation_id=correlation_id, causation_id=cause)

    def submission(
        self,
        key: CallKey,
        *,
        ahead_us: int | None = None,
        fingerprint: str = "f",
        idempotency_key: str | None = None,
        tags: tuple[str, ...] = (),
        correlation_id: str = "corr",
        traceparent: str | None = None,
        hooks: Hooks | None = None,
    ) -> Envelope:
        due_at = None if ahead_us is None else Instant(self.clock.now_us() + ahead_us)
        message = SubmitServiceCall(
            key.service_call_id, "bill", SPEC, fingerprint, due_at, tags, idempotency_key, None, traceparent, hooks
        )
        return self.seal(key, message, correlation_id)

    async def ask(self, *envelopes: Envelope) -> list[Message]:
        replies = await self.orchestration.answer(envelopes)
        for envelope, reply in zip(envelopes, replies, strict=True):
            assert reply.causation_id == envelope.id
        return [self.reply(reply) for reply in replies]

    def reply(self, envelope: Envelope) -> Message:
        """The reply as it was before it was sealed."""
        return msgspec.structs.replace(self.registry.open(envelope), tenant_id="")

    async def deliver(self, *envelopes: Envelope) -> list[OneDelivery]:
        deliveries = [OneDelivery(envelope) for envelope in envelopes]
        await self.orchestration.handle(deliveries)
        return deliveries

    async def scheduled(self, ahead_us: int = 60 * SECOND) -> CallKey:
        key = self.key()
        await self.ask(self.submission(key, ahead_us=ahead_us))
        return key

    async def running(self) -> CallKey:
        key = self.key()
        await self.ask(self.submission(key))
        return key

    def call(self, key: CallKey) -> ServiceCall:
        return self.tables.calls[key]

    def execution_id(self, key: CallKey) -> str:
        execution_id = self.call(key).execution_id
        assert execution_id is not None
        return execution_id

    def types(self, key: CallKey) -> list[str]:
        return [envelope.type for envelope in self.tables.messages(key)]


@pytest.fixture
def world() -> World:
    return World()


class TestSubmit:
    async def test_a_batch_is_one_transaction(self, world: World):
        keys = [world.key() for _ in range(5)]
        replies = await world.ask(*(world.submission(key, ahead_us=SECOND) for key in keys))
        assert replies == [CommandAccepted(key.service_call_id, "Scheduled") for key in keys]
        assert world.tables.commits == 1
        assert world.types(keys[0]) == ["ServiceCallSubmitted", "ServiceCallScheduled", "ScheduleTimer"]
        assert sum(isinstance(event, CommandHandled) for event in world.events) == 5
        assert [event.status for event in world.events if isinstance(event, ServiceCallChanged)] == ["Scheduled"] * 5

    async def test_messages_carry_causation_and_correlation_ids(self, world: World):
        key = world.key()
        envelope = world.submission(key, correlation_id="request-1")
        await world.ask(envelope)
        for sent in world.tables.messages(key):
            assert (sent.causation_id, sent.correlation_id) == (envelope.id, "request-1")
        assert len({sent.id for sent in world.tables.messages()}) == 3

    async def test_a_repeated_submission_returns_the_existing_call(self, world: World):
        key, other = world.key(), world.key()
        await world.ask(world.submission(key, ahead_us=SECOND, idempotency_key="k", correlation_id="first"))
        again = world.submission(key, ahead_us=SECOND, idempotency_key="k", correlation_id="second")
        under_another_id = world.submission(other, ahead_us=SECOND, idempotency_key="k", correlation_id="third")
        replies = await world.orchestration.answer([again, under_another_id])
        assert [reply.correlation_id for reply in replies] == ["first", "first"]
        accepted = CommandAccepted(key.service_call_id, "Scheduled", created=False)
        assert [world.reply(reply) for reply in replies] == [accepted, accepted]
        assert len(world.tables.calls) == 1
        assert len(world.tables.messages()) == 3
        results = [event.result for event in world.events if isinstance(event, CommandHandled)]
        assert results == ["accepted", "repeated", "repeated"]

    async def test_a_repeated_submission_returns_the_current_status(self, world: World):
        key = await world.running()
        event = ExecutionSucceeded(key.service_call_id, world.execution_id(key), Instant(EPOCH_US), OK)
        await world.deliver(world.seal(key, event))
        assert await world.ask(world.submission(key)) == [
            CommandAccepted(key.service_call_id, "Succeeded", created=False)
        ]

    async def test_a_different_call_under_the_same_id_or_key_is_a_conflict(self, world: World):
        key, other = world.key(), world.key()
        await world.ask(world.submission(key, idempotency_key="k"))
        replies = await world.ask(
            world.submission(key, fingerprint="g"), world.submission(other, fingerprint="g", idempotency_key="k")
        )
        assert [reply.code for reply in replies if isinstance(reply, CommandRefused)] == ["IDEMPOTENCY_CONFLICT"] * 2
        assert len(world.tables.calls) == 1

    async def test_idempotency_keys_are_separate_per_tenant(self, world: World):
        mine, theirs = world.key(), world.key(world.new_id())
        replies = await world.ask(
            world.submission(mine, idempotency_key="k"), world.submission(theirs, fingerprint="g", idempotency_key="k")
        )
        assert [reply.created for reply in replies if isinstance(reply, CommandAccepted)] == [True, True]

    async def test_equal_submissions_in_one_batch_create_one_call(self, world: World):
        key, other = world.key(), world.key()
        replies = await world.ask(
            world.submission(key, idempotency_key="k"),
            world.submission(key, idempotency_key="k"),
            world.submission(other, idempotency_key="k"),
            world.submission(other, idempotency_key="k", fingerprint="g"),
        )
        id = key.service_call_id
        assert replies[:3] == [
            CommandAccepted(id, "Running"),
            CommandAccepted(id, "Running", created=False),
            CommandAccepted(id, "Running", created=False),
        ]
        assert isinstance(replies[3], CommandRefused)
        assert list(world.tables.calls) == [key]

    async def test_a_repetition_in_another_trace_leaves_the_call_in_the_first_one(self, world: World):
        key = world.key()
        first, second = (f"00-{n}af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" for n in (1, 2))
        await world.ask(world.submission(key, ahead_us=SECOND, idempotency_key="k", traceparent=first))
        [reply] = await world.ask(world.submission(key, ahead_us=SECOND, idempotency_key="k", traceparent=second))
        assert reply == CommandAccepted(key.service_call_id, "Scheduled", created=False)
        assert world.call(key).traceparent == first

    async def test_a_submission_with_too_many_tags_is_refused(self, world: World):
        tags = tuple(f"t{i}" for i in range(world.limits.tags_max + 1))
        [reply] = await world.ask(world.submission(world.key(), tags=tags))
        assert isinstance(reply, CommandRefused)
        assert reply.code == "TOO_MANY_TAGS"
        assert not world.tables.calls

    async def test_a_malformed_command_is_an_invalid_message(self, world: World):
        envelope = world.submission(world.key())
        with pytest.raises(InvalidMessage):
            await world.ask(msgspec.structs.replace(envelope, payload=msgspec.Raw(b'{"nonsense":1}')))

    async def test_no_event_is_emitted_for_a_transaction_that_did_not_commit(self, world: World):
        world.tables.fail_next.append(StoreUnavailable("disk full"))
        with pytest.raises(StoreUnavailable):
            await world.ask(world.submission(world.key()))
        assert not world.events


class TestTagsAndDelete:
    async def test_tags_are_added_and_removed(self, world: World):
        key = world.key()
        await world.ask(world.submission(key, tags=("b",)))
        id = key.service_call_id
        replies = await world.ask(
            world.seal(key, TagServiceCall(id, "a")),
            world.seal(key, TagServiceCall(id, "a")),
            world.seal(key, UntagServiceCall(id, "b")),
            world.seal(key, UntagServiceCall(id, "never")),
            world.seal(key, TagServiceCall(id, "c")),
        )
        assert replies == [CommandAccepted(id, "Running")] * 5
        assert world.tables.tags[key] == {"a", "c"}

    async def test_a_call_created_in_a_batch_can_be_tagged_in_the_same_batch(self, world: World):
        key = world.key()
        await world.ask(world.submission(key, tags=("b",)), world.seal(key, TagServiceCall(key.service_call_id, "a")))
        assert world.tables.tags[key] == {"a", "b"}

    async def test_tags_beyond_the_limit_are_refused(self):
        world = World(AgentLimits(tags_max=2))
        key = world.key()
        await world.ask(world.submission(key, tags=("a", "b")))
        id = key.service_call_id
        refused, repeated, removed, accepted = await world.ask(
            world.seal(key, TagServiceCall(id, "c")),
            world.seal(key, TagServiceCall(id, "a")),
            world.seal(key, UntagServiceCall(id, "a")),
            world.seal(key, TagServiceCall(id, "c")),
        )
        assert isinstance(refused, CommandRefused)
        assert refused.code == "TOO_MANY_TAGS"
        assert [type(reply) for reply in (repeated, removed, accepted)] == [CommandAccepted] * 3
        assert world.tables.tags[key] == {"b", "c"}

    async def test_commands_for_a_missing_call_are_refused_as_not_found(self, world: World):
        key, theirs = world.key(), await world.scheduled()
        id = key.service_call_id
        unknown = CallKey(world.new_id(), theirs.service_call_id)
        replies = await world.ask(
            world.seal(key, TagServiceCall(id, "a")),
            world.seal(key, UntagServiceCall(id, "a")),
            world.seal(key, DeleteServiceCall(id)),
            world.seal(unknown, DeleteServiceCall(unknown.service_call_id)),
        )
        assert [r.code for r in replies if isinstance(r, CommandRefused)] == ["SERVICE_CALL_NOT_FOUND"] * 4
        assert theirs in world.tables.calls

    async def test_a_scheduled_call_can_be_deleted_once(self, world: World):
        key = await world.scheduled()
        command = world.seal(key, DeleteServiceCall(key.service_call_id), "another request")
        accepted, gone = await world.ask(command, world.seal(key, DeleteServiceCall(key.service_call_id)))
        assert accepted == CommandAccepted(key.service_call_id, "Scheduled")
        assert isinstance(gone, CommandRefused)
        assert not world.tables.calls
        deleted = world.tables.messages(key)[-1]
        assert (deleted.type, deleted.causation_id, deleted.correlation_id) == (
            "ServiceCallDeleted",
            command.id,
            "corr",
        )

    async def test_a_job_deletes_a_call_only_if_it_still_matches(self, world: World):
        key = world.key()
        await world.ask(world.submission(key, ahead_us=SECOND, tags=("eu",)))
        wanted = JobFilter.of(RowFilter(EPOCH_US + 1, ("eu",), name="BIL", status="Scheduled"))
        tag, untag, delete = (
            world.seal(key, TagServiceCall(key.service_call_id, "eu")),
            world.seal(key, UntagServiceCall(key.service_call_id, "eu")),
            world.seal(key, DeleteServiceCall(key.service_call_id, wanted)),
        )
        _, refused, _, accepted = await world.ask(untag, delete, tag, delete)
        assert isinstance(refused, CommandRefused)
        assert refused.code == "SERVICE_CALL_NOT_SCHEDULED"
        assert isinstance(accepted, CommandAccepted)
        assert key not in world.tables.calls

    async def test_id_and_key_of_a_deleted_call_can_be_reused_in_the_same_batch(self, world: World):
        key = world.key()
        await world.ask(world.submission(key, ahead_us=SECOND, idempotency_key="k"))
        replies = await world.ask(
            world.seal(key, DeleteServiceCall(key.service_call_id)),
            world.submission(key, ahead_us=2 * SECOND, idempotency_key="k", fingerprint="g"),
        )
        assert [type(reply) for reply in replies] == [CommandAccepted] * 2
        assert world.call(key).fingerprint == "g"

    async def test_a_running_call_cannot_be_deleted(self, world: World):
        key = await world.running()
        [reply] = await world.ask(world.seal(key, DeleteServiceCall(key.service_call_id)))
        assert isinstance(reply, CommandRefused)
        assert reply.code == "SERVICE_CALL_NOT_SCHEDULED"
        assert key in world.tables.calls


class TestEvents:
    async def test_a_scheduled_call_runs_and_succeeds(self, world: World):
        key = await world.scheduled(SECOND)
        id = key.service_call_id
        world.clock.advance(SECOND + 250)
        due = world.seal(key, DueTimeReached(id, Instant(world.call(key).due_at), Instant(world.clock.now_us())))
        await world.deliver(due)
        assert world.call(key).status is CallStatus.RUNNING
        running, start = world.tables.messages(key)[-2:]
        assert (running.causation_id, start.causation_id) == (due.id, due.id)
        assert [e.lag_us for e in world.events if isinstance(e, ServiceCallChanged)] == [None, 250]
        now = Instant(world.clock.now_us())
        await world.deliver(world.seal(key, ExecutionStarted(id, world.execution_id(key), now)))
        assert world.call(key).started_at == now
        await world.deliver(world.seal(key, ExecutionSucceeded(id, world.execution_id(key), now, OK)))
        assert world.call(key).status is CallStatus.SUCCEEDED
        assert world.types(key)[3:] == ["ServiceCallRunning", "StartExecution", "ServiceCallSucceeded"]

    async def test_several_messages_about_one_call_are_one_change(self, world: World):
        key, other = await world.scheduled(SECOND), await world.scheduled(SECOND)
        world.clock.advance(SECOND)
        commits = world.tables.commits
        dues = [
            world.seal(
                k, DueTimeReached(k.service_call_id, Instant(world.call(k).due_at), Instant(world.clock.now_us()))
            )
            for k in (key, other, key)
        ]
        await world.deliver(*dues)
        assert world.types(key).count("StartExecution") == 1
        execution_id = world.execution_id(key)
        await world.deliver(
            world.seal(key, ExecutionStarted(key.service_call_id, execution_id, Instant(EPOCH_US))),
            world.seal(
                key, ExecutionInterrupted(key.service_call_id, execution_id, Instant(EPOCH_US), Instant(EPOCH_US))
            ),
            world.seal(key, ExecutionSucceeded(key.service_call_id, execution_id, Instant(EPOCH_US), OK)),
        )
        assert world.tables.commits == commits + 2
        assert world.call(key).status is CallStatus.RUNNING
        assert world.call(key).executions == 2
        assert world.types(key).count("StartExecution") == 2

    async def test_messages_without_effect_are_acknowledged(self, world: World):
        key = await world.running()
        unknown = world.key()
        before = world.call(key)
        deliveries = await world.deliver(
            world.seal(key, DueTimeReached(key.service_call_id, Instant(before.due_at), Instant(EPOCH_US))),
            world.seal(unknown, DueTimeReached(unknown.service_call_id, Instant(EPOCH_US), Instant(EPOCH_US))),
            world.seal(key, ExecutionSucceeded(key.service_call_id, world.new_id(), Instant(EPOCH_US), OK)),
        )
        assert [delivery.failed for delivery in deliveries] == [None] * 3
        assert world.call(key) == before
        assert len(world.tables.messages()) == 3

    async def test_a_malformed_message_fails_alone(self, world: World):
        key = await world.running()
        good = world.seal(key, ExecutionStarted(key.service_call_id, world.execution_id(key), Instant(EPOCH_US)))
        bad = msgspec.structs.replace(good, payload=msgspec.Raw(b"{}"))
        first, second = await world.deliver(bad, good)
        assert isinstance(first.failed, InvalidMessage)
        assert second.failed is None
        assert world.call(key).started_at == EPOCH_US

    async def test_a_change_by_another_transaction_is_retried(self, world: World):
        key = await world.scheduled(SECOND)
        due = world.seal(key, DueTimeReached(key.service_call_id, Instant(world.call(key).due_at), Instant(EPOCH_US)))

        def once() -> None:
            world.tables.before_change = None
            changed = msgspec.structs.replace(
                world.call(key), status=CallStatus.RUNNING, execution_id=world.new_id(), executions=1
            )
            world.tables.calls[key] = changed

        world.tables.before_change = once
        await world.deliver(due)
        assert world.types(key).count("StartExecution") == 0
        assert world.call(key).executions == 1

    async def test_after_repeated_conflicts_the_delivery_fails(self, world: World):
        key = await world.scheduled(SECOND)
        due = world.seal(key, DueTimeReached(key.service_call_id, Instant(world.call(key).due_at), Instant(EPOCH_US)))

        def always() -> None:
            execution_id = world.new_id()
            world.tables.calls[key] = msgspec.structs.replace(
                world.call(key), status=CallStatus.SCHEDULED, execution_id=execution_id
            )

        world.tables.before_change = always
        with pytest.raises(ChangedMeanwhile):
            await world.deliver(due)
        assert world.types(key).count("StartExecution") == 0


class TestFailures:
    async def failed(self, world: World) -> tuple[CallKey, str]:
        """A call that has just failed, and the execution."""
        key = await world.running()
        return key, await self.fail(world, key)

    async def fail(self, world: World, key: CallKey) -> str:
        execution_id = world.execution_id(key)
        ended = ExecutionFailed(key.service_call_id, execution_id, Instant(world.clock.now_us()), OOPS, DOWN)
        await world.deliver(world.seal(key, ended))
        return execution_id

    async def test_failed_call_has_its_cause_until_it_is_retried(self, world: World):
        key, _ = await self.failed(world)
        assert split_failure(world.call(key).failure or "") == ("http://service/x", "HTTP 500")
        await world.ask(world.seal(key, RetryServiceCall(key.service_call_id)))
        assert (world.call(key).status, world.call(key).failure) == (CallStatus.RUNNING, None)

    async def test_dismissed_failure_leaves_the_list_and_the_call_stays_failed(self, world: World):
        key, execution_id = await self.failed(world)
        sent = len(world.tables.messages(key))
        for _ in range(2):
            (reply,) = await world.ask(world.seal(key, DismissFailure(key.service_call_id, execution_id)))
            assert reply == CommandAccepted(key.service_call_id, "Failed")
        assert (world.call(key).status, world.call(key).failure) == (CallStatus.FAILED, None)
        assert len(world.tables.messages(key)) == sent
        await world.ask(world.seal(key, RetryServiceCall(key.service_call_id, execution_id)))
        assert world.call(key).status is CallStatus.RUNNING

    async def test_retry_and_dismissal_of_a_failure_leave_a_later_one_alone(self, world: World):
        key, first = await self.failed(world)
        retry = RetryServiceCall(key.service_call_id, first)
        await world.ask(world.seal(key, retry))
        (under_way,) = await world.ask(world.seal(key, retry))
        await self.fail(world, key)
        refused, accepted = await world.ask(
            world.seal(key, retry), world.seal(key, DismissFailure(key.service_call_id, first))
        )
        for reply in (under_way, refused):
            assert isinstance(reply, CommandRefused)
            assert reply.code == "SERVICE_CALL_NOT_FAILED"
        assert isinstance(accepted, CommandAccepted)
        assert world.call(key).failure is not None
        assert world.call(key).executions == 2


class TestWatchdog:
    async def test_watchdog_dispatches_repeats_and_checks_overdue_calls(self, world: World):
        limits = world.limits
        overdue = await world.scheduled(SECOND)
        waiting = await world.scheduled(3_600 * SECOND)
        unstarted, stuck = await world.running(), await world.running()
        await world.deliver(
            world.seal(stuck, ExecutionStarted(stuck.service_call_id, world.execution_id(stuck), Instant(EPOCH_US)))
        )
        execution_id = world.execution_id(unstarted)
        world.clock.advance(limits.request_timeout_us + limits.watchdog_grace_us)
        world.events.clear()
        assert await world.watchdog.check() == 3
        rescued = {e.service_call_id: e.action for e in world.events if isinstance(e, CallRescued)}
        assert rescued == {
            overdue.service_call_id: "dispatched",
            unstarted.service_call_id: "repeated",
            stuck.service_call_id: "checked",
        }
        assert world.call(overdue).status is CallStatus.RUNNING
        assert world.execution_id(unstarted) == execution_id
        assert world.call(stuck).status is CallStatus.RUNNING
        assert world.call(waiting).status is CallStatus.SCHEDULED
        last = {envelope.aggregate_id: envelope for envelope in world.tables.messages()}
        assert last[unstarted.service_call_id].type == "StartExecution"
        assert last[stuck.service_call_id].type == "CheckExecution"
        for key in (overdue, unstarted, stuck):
            assert last[key.service_call_id].causation_id is None
            assert last[key.service_call_id].correlation_id == "corr"
        assert await world.watchdog.check() == 0

    async def test_watchdog_continues_batch_by_batch(self):
        world = World(AgentLimits(watchdog_batch_max=2))
        for _ in range(5):
            await world.scheduled(SECOND)
        world.clock.advance(60 * SECOND)
        assert await world.watchdog.check() == 5
        assert all(call.status is CallStatus.RUNNING for call in world.tables.calls.values())

    async def test_watchdog_purges_calls_after_the_retention_time(self):
        world = World(AgentLimits(purge_batch_max=2))
        old = [await world.running() for _ in range(5)]
        for key in old:
            event = ExecutionSucceeded(key.service_call_id, world.execution_id(key), Instant(EPOCH_US), OK)
            await world.deliver(world.seal(key, event))
        unfinished = await world.running()
        world.clock.advance(world.limits.retention_us + 1)
        assert await world.watchdog.purge() == 5
        assert list(world.tables.calls) == [unfinished]
        assert world.events[-1] == AgentRowsPurged("calls", 5)

    async def test_a_failed_watchdog_round_is_reported_and_followed_by_another(self):
        limits = replace(AgentLimits(), watchdog_grace_us=1, watchdog_interval_us=1, purge_interval_us=3_600 * SECOND)
        world = World(limits)
        key = await world.scheduled(SECOND)
        rescued, failures = Wakeup(), []

        def observe(event: AgentEvent) -> None:
            if isinstance(event, AgentStepFailed):
                failures.append(event)
            elif isinstance(event, CallRescued):
                rescued.wake()

        world.clock.advance(2 * SECOND)
        world.tables.fail_next += [StoreUnavailable("gone"), RuntimeError("a fault")]
        watchdog = Watchdog(world.store, AgentContext(world.registry, world.clock, limits, observe))
        watchdog.start()
        assert await rescued.wait(20 * SECOND)
        await watchdog.close()
        await watchdog.close()
        assert [failure.step for failure in failures] == ["watchdog", "watchdog"]
        assert world.call(key).status is not CallStatus.SCHEDULED


async def test_end_with_a_hook_submits_one_notification_however_often_it_is_reported(world: World) -> None:
    key = world.key()
    await world.ask(world.submission(key, hooks=Hooks(failure=Hook("http://alerts/", {"a": "b"}))))
    failure = ExecutionFailed(key.service_call_id, world.execution_id(key), Instant(world.clock.now_us()), OOPS)
    await world.deliver(world.seal(key, failure), world.seal(key, failure))
    await world.deliver(world.seal(key, failure))
    (note,) = [call for call in world.tables.calls.values() if call.key != key]
    assert (note.request_spec.url, note.request_spec.headers, note.hooks) == ("http://alerts/", {"a": "b"}, None)
    assert (note.tags, note.status, note.correlation_id) == (("notification",), CallStatus.RUNNING, "corr")
    assert msgspec.json.decode(bytes(note.request_spec.body))["type"] == "serviceCall.failed"
