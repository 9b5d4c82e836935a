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
    #: Connections to services, open or being opened, for the agent's calls. They are apart from timers' connections,
    #: so that neither can use up the other's; not below `agent.executions_in_flight_max`.
    agent_connections_max: int = 2_048
    #: How long a request waits for a free connection before it counts as not sent; its timeout begins after that.
    #: Raised: fewer fresh starts while all connections are busy.
    connection_wait_max_us: int = 2 * SECOND
    #: Idle connections kept for one destination; more are closed as they become idle. Raised: bursts reuse more
    #: connections, for more open files.
    idle_connections_max: int = 256
    #: How long an idle connection is kept. Keep it below the receivers' own limit, so that it isn't they who close;
    #: lowered: more new connections.
    idle_timeout_us: int = 30 * SECOND
    #: How long a connection may have been idle to carry a request that must not be sent twice (POST or PATCH of a service
    #: call): the receiver may be closing an older one just now.
    reuse_idle_max_us: int = 1 * SECOND
    #: Bytes of a response's body that are read; what is longer is cut, and its connection closed. Raised: more memory
    #: for each callback under way.
    body_bytes_max: int = 128 * 1024
    #: Headers of a service's response that are reported; those beyond it are left out.
    answer_headers_max: int = 128
    #: Bytes of a response that aren't its body (head, interim responses, trailers); beyond it the response counts as
    #: broken.
    header_bytes_max: int = 32 * 1024
    #: Headers that are sent with a callback from a timer's own; with `headers_max`, the lower of the two counts.
    request_headers_max: int = 32
    #: Bytes of names and values of a timer's own headers together; a timer with more is refused.
    request_header_bytes_max: int = 8 * 1024
    #: Parsed callback URLs kept in memory. Raised: less work where very many different URLs are called.
    targets_cached_max: int = 1_024
    #: How long a resolved address is used before the name is resolved again. Raised: fewer queries; lowered: a name
    #: that moved is followed sooner.
    dns_ttl_us: int = 10 * SECOND
    #: How much longer than `callbacks.dns_ttl` an address is used while name servers fail or are slow. Lowered:
    #: outages of DNS show sooner as NAME_NOT_RESOLVED.
    dns_stale_max_us: int = 3_600 * SECOND
    #: Resolved names kept in memory. Raise it where timers name more hosts than this.
    dns_names_cached_max: int = 1_024
    #: Names that are resolved at once; requests to further ones count as not sent (RESOLVER_FULL) and are made again.
    dns_lookups_max: int = 4_096
    #: How often time-outs of callbacks are checked, and so how late one can be noticed. Lowered: more exact, for more
    #: processor time.
    deadline_interval_us: int = 10 * MS
    #: Distinct answers that are recognised without being parsed again, of all receivers together (twice as many for a
    #: moment); 0 parses every answer.
    answers_remembered_max: int = 1_024
    #: Bytes, head included, of a response that may be one of `callbacks.answers_remembered_max`; longer ones are
    #: always parsed.
    answer_remembered_bytes_max: int = 1_024
