"""Limits of the web pages, by name. `tocsin.config` fills them from file, environment and flags."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UiLimits:
    """Durations in seconds (`_s`). `docs/reference/settings.md` describes each under the same name."""

    #: Bytes of a form on the web pages, its payload included; a larger one is refused.
    form_bytes_max: int = 512 * 1024
    #: How long a form may take to arrive.
    form_read_timeout_s: float = 30.0
    #: How long a sign-in lasts without a request. Lowered: people type their key more often.
    session_idle_timeout_s: float = 12 * 3_600.0
    #: How long a sign-in lasts at most, however much it is used.
    session_lifetime_max_s: float = 7 * 86_400.0
    #: Sign-ins that each key can have at once; with one more, the one that was used longest ago ends.
    sign_ins_per_key_max: int = 1_000
    #: Sign-ins in use that a node keeps in memory; further ones are read from the store for each request.
    sign_ins_cached_max: int = 10_000
    #: How long signing in or out, and looking up a sign-in that isn't in memory, waits for the store. A sign-in or sign-out
    #: that the store does not take in this time holds on that node only.
    sign_in_timeout_s: float = 2.0
    #: For how long a node accepts the sign-ins in its memory although it can't read whether they have ended. After that
    #: people have to sign in there again.
    sign_ins_unread_max_s: float = 60.0
    #: Open pages that are kept up to date; further ones are so after a reload only.
    streams_max: int = 500
    #: How often an open page gets what has changed. Raised: less work for the server, older statistics.
    live_interval_s: float = 1.0
    #: How long a point of the overview's charts lasts. Charts reach back by this times `ui.figures_buckets`.
    figures_bucket_s: float = 10.0
    #: Points of the overview's charts that each node keeps in memory. Raised: charts reach further back.
    figures_buckets: int = 360
    #: Failing destinations remembered for each point; the calls of further ones are counted together.
    figures_destinations_max: int = 100
    #: How often a node asks another what it counted, at most, however many look at its overview. Nobody looks: not at all.
    figures_ask_interval_s: float = 1.0
    #: Starts of nodes that have ended whose part is kept, and named, for as long as the charts reach back.
    figures_ended_nodes_max: int = 64
    #: About how many bytes of points a node tells another at once: taking them in keeps timers waiting for 2 ms or so.
    figures_message_bytes: int = 16 * 1024
    #: Rows that a list begins with, and grows by, where nobody says how many.
    list_rows: int = 50
    #: Rows that one request of a list gets at most, and among which it looks for new ones.
    list_rows_max: int = 500
    #: Rows that a list grows to by scrolling; from there on a link leads to a page of its own.
    list_rows_shown_max: int = 10_000
    #: How long a list of timers looks for those that match before it shows what it found; an open page goes on by itself.
    list_search_timeout_s: float = 0.15
    #: Tenants that a browser's cookie remembers.
    tenants_remembered_max: int = 8
    #: How long a browser's cookie remembers a tenant after it was first opened.
    tenants_remembered_s: float = 180 * 86_400.0
    #: Tenants whose changes are counted for open pages; beyond it the one that was quiet for longest begins anew.
    tenant_pulses_max: int = 10_000
    #: Entries of a service call's trace that its page shows.
    trace_entries_max: int = 500
    #: Timers that one action on a page cancels at most.
    cancel_timers_max: int = 1_000
    #: Timers read from the store at once for an export. Raised: faster exports, more memory.
    export_page_timers: int = 500
