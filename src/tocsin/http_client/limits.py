"""The callback client's limits, by name."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.setting import setting

MS = 1_000
SECOND = 1_000 * MS


@dataclass(frozen=True, slots=True)
class CallbackLimits:
    """Durations in microseconds (`_us`)."""

    connections_max: int = setting(
        2_000,
        "Connections to the receivers of timers, all destinations together; idle ones are closed to make room. A "
        "timer that finds no free connection fires a little later, which does not count as an attempt. Higher values "
        "take more memory and file descriptors.",
    )
    agent_connections_max: int = setting(
        2_048,
        "Connections for service calls, separate from those of timers so that neither can exhaust the other's. Must "
        "be at least `agent.executions_in_flight_max`. Higher values keep more idle connections for later calls.",
    )
    idle_timeout_us: int = setting(
        30 * SECOND,
        "How long an idle connection to a receiver is kept open. Keep it below the receivers' own keep-alive timeout, "
        "so that no request meets a connection that is being closed; lower values open more connections.",
    )
    response_body_bytes_max: int = setting(
        128 * 1024,
        "Bytes of a response's body that are read, for each timer of a batch, up to 4 MiB together; a longer body is cut "
        "and its connection closed. Keep it above "
        "`payload_bytes_max`, for responses that reschedule. Higher values take more memory for each callback "
        "in flight.",
    )
    dns_ttl_us: int = setting(
        10 * SECOND,
        "How long a resolved address is used before the host name is resolved again. Higher values query DNS less; "
        "with lower values a host that moved is followed sooner.",
    )
    dns_lookups_max: int = setting(
        4_096,
        "Host names being resolved at once; those that no request waits for give way to others. A request to a further one "
        "counts as not sent (RESOLVER_FULL) and is made again. Keep it above `callbacks.connections_max` and "
        "`callbacks.agent_connections_max` together. Higher values help while many host names do not resolve, for more "
        "memory.",
    )

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: How long a request waits for a free connection before it counts as not sent; its timeout begins after that.
    connection_wait_max_us: int = 2 * SECOND
    #: Idle connections kept for one destination: as many as `destination_in_flight_max` lets a burst use.
    idle_connections_max: int = 256
    #: How long a connection may have been idle and still carry a request that must not be sent twice (POST or PATCH of
    #: a service call): the receiver may be closing one that was idle for longer.
    reuse_idle_max_us: int = 1 * SECOND
    #: Headers of a service's response that are reported; further ones are left out.
    response_headers_max: int = 128
    #: Bytes of the body of a response to a batch, which may have `response_body_bytes_max` for each of its timers. 500
    #: results with reasons of failures take less than one megabyte, and payloads as long as the request's another one.
    batch_response_bytes_max: int = 4 * 1024 * 1024
    #: Bytes of a response besides its body (head, interim responses, trailers); a longer response is malformed.
    response_head_bytes_max: int = 32 * 1024
    #: A timer's own headers that are sent with a callback; with `headers_max`, the lower of the two counts.
    request_headers_max: int = 32
    #: Bytes of names and values of a timer's own headers together; a timer with more is refused. Receivers commonly
    #: refuse larger heads.
    request_header_bytes_max: int = 8 * 1024
    #: Parsed callback URLs kept in memory.
    targets_cached_max: int = 1_024
    #: How much longer than `dns_ttl_us` an address is used while name servers fail or are slow.
    dns_stale_max_us: int = 3_600 * SECOND
    #: Resolved names kept in memory.
    dns_names_cached_max: int = 1_024
    #: How often timeouts of callbacks are checked, and so how late one is noticed.
    timeout_check_interval_us: int = 10 * MS
    #: Distinct responses, of all receivers together, that are recognized without parsing; 0 parses every response.
    response_cache_entries_max: int = 256
    #: Bytes, head included, of a response that the cache takes; longer ones are always parsed.
    response_cache_entry_bytes_max: int = 1_024

    def body_bytes_max(self, items: int) -> int:
        """How many bytes of a response's body are read, by the number of callbacks that it answers."""
        of_one = self.response_body_bytes_max
        return max(of_one, min(items * of_one, self.batch_response_bytes_max))
