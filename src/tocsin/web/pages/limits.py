"""Limits of the web pages, by name."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.setting import Topic, setting


@dataclass(frozen=True, slots=True)
class UiLimits:
    """Durations in seconds (`_s`)."""

    session_idle_timeout_s: float = setting(
        12 * 3_600.0,
        "How long a session on the web pages lasts without a request; what open pages ask for by themselves does not "
        "count. With lower values people sign in more often.",
        topic=Topic.SECURITY,
    )
    session_lifetime_max_s: float = setting(
        7 * 86_400.0,
        "How long a session on the web pages lasts at most, even if it is in use. With lower values people sign in "
        "again more often, and a copied cookie works for less time.",
        topic=Topic.SECURITY,
    )
    session_stale_max_s: float = setting(
        60.0,
        "How long a node accepts the sessions in its memory while it cannot read from the store whether they were "
        "ended. Higher values bridge longer outages; with lower values a session ended elsewhere works for less time.",
        topic=Topic.SECURITY,
    )
    form_bytes_max: int = setting(
        512 * 1024,
        "Bytes of a form on the web pages; a larger one is refused. Keep it above `payload_bytes_max`, because a form "
        "contains the payload. Higher values take more memory for each form that is sent.",
    )
    streams_max: int = setting(
        500,
        "Open pages that a node updates live; further ones keep what they show, and try again by themselves within 30 s. "
        "Higher values take more connections and processor time.",
    )
    list_search_timeout_s: float = setting(
        0.15,
        "How long a list of timers searches for matches before it shows what it found; an open page continues on its "
        "own. Higher values show more at once and answer later.",
    )
    selected_max: int = setting(
        1_000,
        "Selected timers or calls that one request of the pages cancels, deletes, replays or retries; more are changed by a "
        "job. With higher values such a request takes longer.",
    )

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: How long a form may take to arrive.
    form_read_timeout_s: float = 30.0
    #: Sessions that each key can have at once; one more ends the one that was used longest ago.
    sessions_per_key_max: int = 1_000
    #: Sessions in use that a node keeps in memory; further ones are read from the store for each request.
    sessions_cached_max: int = 10_000
    #: How long signing in or out, and looking up a session that is not in memory, waits for the store. A sign-in or
    #: sign-out that the store does not accept in this time applies to that node only.
    session_store_timeout_s: float = 2.0
    #: How often an open page receives changes.
    live_interval_s: float = 1.0
    #: Rows that a list shows first, and adds when scrolled.
    list_rows: int = 50
    #: Rows that one request of a list returns at most, and among which it searches for new ones.
    list_rows_max: int = 500
    #: Rows that a list grows to by scrolling; then a link leads to the next page.
    list_rows_shown_max: int = 10_000
    #: Tenants with a label that the pages know by it; further ones show their id.
    tenant_labels_max: int = 1_000
    #: Characters of a tenant's label.
    tenant_label_chars_max: int = 60
    #: Tenants that a browser's cookie remembers.
    tenants_remembered_max: int = 8
    #: How long a browser's cookie remembers a tenant after it was first opened.
    tenants_remembered_s: float = 180 * 86_400.0
    #: Entries of a service call's trace that its page shows.
    trace_entries_max: int = 500
    #: Timers that one read of an export returns.
    export_page_timers: int = 500
