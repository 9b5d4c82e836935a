"""Every limit of the callback client, by name. `tocsin.config` fills them from file, environment and flags."""

from __future__ import annotations

from dataclasses import dataclass

MS = 1_000
SECOND = 1_000 * MS


@dataclass(frozen=True, slots=True)
class CallbackLimits:
    """All durations in microseconds (`_us`). `docs/reference/settings.md` describes each under the same name."""

    #: Connections to timers' receivers, open or being opened, all destinations together; idle ones make room for new ones. A
    #: timer that finds none free is fired a little later; that is no attempt.
    connections_max: int = 2_000
    #: The same of connections to services, for the agent's calls: neither can use up the other's.
    agent_connections_max: int = 2_048
    #: How long a request waits for a connection to be free before it counts as not sent. Its timeout begins after that.
    connection_wait_max_us: int = 2 * SECOND
    #: Idle connections kept for one destination; more are closed as they become idle.
    idle_connections_max: int = 256
    #: How long an idle connection is kept, to be closed by us rather than by a receiver's own time limit.
    idle_timeout_us: int = 30 * SECOND
    #: How long a connection may have been idle to carry a request that must not be sent twice (POST or PATCH of a service
    #: call): the receiver may be closing an older one just now.
    reuse_idle_max_us: int = 1 * SECOND
    #: Bytes of an answer's body that are read; a longer one is cut, and its connection closed.
    body_bytes_max: int = 128 * 1024
    #: Headers of an answer to a service call that are reported; those beyond it are left out.
    answer_headers_max: int = 128
    #: Bytes of an answer that are not body (head, interim answers, trailers) before it counts as broken.
    header_bytes_max: int = 32 * 1024
    #: Headers that a timer can bring.
    request_headers_max: int = 32
    #: Bytes of names and values of the headers that a timer can bring.
    request_header_bytes_max: int = 8 * 1024
    #: Parsed URLs that are remembered.
    targets_cached_max: int = 1_024
    #: How long a resolved name is used without asking again.
    dns_ttl_us: int = 10 * SECOND
    #: How long after that it is still used when no new answer comes, because name servers fail or are slow.
    dns_stale_max_us: int = 3_600 * SECOND
    #: Resolved names that are remembered.
    dns_names_cached_max: int = 1_024
    #: Names that are being resolved at once; requests to further ones count as not sent.
    dns_lookups_max: int = 4_096
    #: Deadlines are looked at no more often than this: how late a time-out can come.
    deadline_interval_us: int = 10 * MS
    #: Distinct answers that are recognised without being parsed again, of all receivers together (twice as many for a
    #: moment); 0 parses every answer.
    answers_remembered_max: int = 1_024
    #: Bytes of an answer, head included, up to which it is remembered.
    answer_remembered_bytes_max: int = 1_024
