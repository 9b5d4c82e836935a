// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
/** What requests and answers contain. */

import type { DurationLike, Instant, InstantLike, Open } from "../values.js";

/** The action that an entry records. */
export type AuditAction = "sign_in" | "sign_in_failed" | "sign_out" | "key_created" | "key_changed" | "key_deleted" | "namespace_created" | "namespace_changed" | "namespace_deleted" | "secret_rotated" | "tenant_labeled" | "failures_dismissed" | "flow_changed" | "flow_deleted" | "calendar_changed" | "calendar_deleted" | "credential_changed" | "credential_deleted" | "monitor_changed" | "monitor_paused" | "monitor_resumed" | "monitor_rotated" | "monitor_deleted" | "destination_changed" | "job_created" | "job_changed" | "job_ended" | "inbox_opened" | "inbox_replayed" | "inbox_deleted" | "timer_created" | "timers_canceled" | "timers_replayed" | "schedule_created" | "schedule_deleted";

/** Where a change came from. */
export type AuditSource = "api" | "pages" | "cli" | "mcp" | "inbox";

/**
 * `closed`: attempts begin as usual. `open`: none begins before the wait is over. `half_open`: probes, one at a
 * time.
 */
export type BreakerState = "closed" | "open" | "half_open";

/** How responses to a namespace's callbacks are interpreted. */
export type CallbackAnswers = "standard" | "strict";

/** The method of a callback. GET and HEAD have no body. */
export type CallbackMethod = "POST" | "GET" | "PUT" | "PATCH" | "DELETE" | "HEAD";

/** What becomes of instants that pass while a schedule cannot fire. */
export type CatchUp = "latest" | "all" | "none";

/** Where a token endpoint gets the client's secret. */
export type ClientAuth = "basic" | "post";

/** How a request identifies itself. */
export type CredentialType = "basic" | "bearer" | "oauth2ClientCredentials" | "jwt" | "mtls";

/**
 * Why an instant doesn't fire: its date is of a calendar of `skip`, or of none of `only`; it was skipped by hand
 * (once); or a calendar is missing, so that nobody knows.
 */
export type ExclusionReason = "only" | "skip" | "once" | "missing";

/** What failed. */
export type FailedKind = "timer" | "occurrence" | "notification" | "call";

/** What the failures of a group have in common. */
export type FailureGroupedBy = "namespace" | "tenant" | "destination" | "error" | "kind";

/** Why an attempt failed; docs/reference/errors.md has a remedy for each. */
export type FailureKind = "NO_STREAM" | "NATS_REFUSED" | "CALLBACK_NOT_OK" | "INVALID_CALLBACK_RESPONSE" | "NO_RESULT" | "TIMEOUT" | "CONNECTION_FAILED" | "CONNECTION_CLOSED" | "NAME_NOT_RESOLVED" | "TLS_FAILED" | "BAD_RESPONSE" | "EGRESS_REFUSED" | "SECRET_UNREADABLE" | "INVALID_REQUEST" | "INVALID_SECRET" | "SHUTDOWN" | "EXPIRED" | "HTTP_STATUS" | "INTERRUPTED" | "START_TIMEOUT" | "WATCHDOG_TIMEOUT";

/** Which finished timers stay visible until retention removes them. */
export type HistoryMode = "all" | "failures" | "none";

/** What a job does with each row. */
export type JobAction = "cancel" | "shift" | "setUrl" | "pause" | "resume" | "delete" | "replay";

/** What a job changes. */
export type JobKind = "timers" | "schedules" | "failures" | "calls" | "namespace";

/** running and paused ones go on, or may; completed, canceled and failed ones have ended. */
export type JobState = "running" | "paused" | "completed" | "canceled" | "failed";

/** What an API key allows; each role includes the previous ones. */
export type KeyRole = "read" | "write" | "admin";

/** The state of a schedule that has not ended. */
export type LiveScheduleStatus = "active" | "paused";

/** What is known of a monitor's job. */
export type MonitorState = "new" | "up" | "late" | "failed" | "paused";

/** Why an occurrence fired. */
export type OccurrenceSource = "regular" | "trigger" | "backfill" | "replay";

/** What a create does if a timer with its id exists. */
export type OnConflict = "replace" | "keep" | "reject" | "debounce";

/** What becomes of an instant that a calendar excludes. */
export type OnSkipped = "none" | "next";

/** How a period of a monitor ended. */
export type PeriodState = "onTime" | "late" | "missed" | "failed" | "excused";

/** What a ping reports. */
export type PingEvent = "success" | "start" | "fail";

/** How a run stands or ended. */
export type RunStatus = "pending" | "completed" | "failed" | "canceled" | "expired" | "rescheduled" | "superseded" | "missed";

/** A schedule's state. Only `active` schedules fire at their instants. */
export type ScheduleStatus = "active" | "paused" | "ended";

/** The method of a service call's request. */
export type ServiceCallMethod = "POST" | "GET" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS";

/** A service call's state. */
export type ServiceCallStatus = "Scheduled" | "Running" | "Retrying" | "Succeeded" | "Failed";

/** The length of a slot. */
export type StatisticsResolution = "minute" | "tenMinutes";

/**
 * Where a timer is. `scheduled`, `retrying`: its instant, or that of its next attempt, is in the future.
 * `waiting`: it is due and waits for its turn. `firing`: an attempt is in flight. `writing`: a result or a
 * change is being stored. `paused`: its namespace is paused, or is being deleted. `suspended`: its stored record
 * can't be read, or the settings of the node that owns its shard forbid the address that its URL leads to.
 * `blocked`: it is due, and no node fires it now. `unknown`: it is due, and the owner of its shard could not be
 * asked. `finished`: it has its final status.
 */
export type TimerState = "scheduled" | "retrying" | "waiting" | "firing" | "writing" | "paused" | "suspended" | "blocked" | "unknown" | "finished";

/** A timer's state. Only `pending` timers fire and can be changed. */
export type TimerStatus = "pending" | "completed" | "failed" | "canceled" | "expired";

/**
 * What has to happen before the timer moves on. `instant`: its time. `destination`, `namespace`, `node`: a free
 * slot there; a paused namespace: that it is resumed. `flow`: a slot or a token of its flow, or of its
 * namespace's limits; a paused flow: that it is resumed. `response`: that of the receiver. `write`: that results
 * or changes are stored. `lease`, `clock`: that of the node that owns its shard. `owner`: a node that owns its
 * shard. `create`: that a client creates it again. `egress`: that the settings permit its address, or its URL
 * leads elsewhere. `secret`: the key under which one of its secrets is encrypted. `credential`: that its
 * credential can be sent: it has a token, exists, and may go to the URL.
 */
export type TimerWaitsFor = "instant" | "destination" | "namespace" | "node" | "flow" | "response" | "write" | "lease" | "clock" | "owner" | "create" | "egress" | "secret" | "credential";

/** What a service call waits for: its due time, or a retry. */
export type WaitingStatus = "Scheduled" | "Retrying";

/** A day of the week. */
export type Weekday = "MON" | "TUE" | "WED" | "THU" | "FRI" | "SAT" | "SUN";

/**
 * A timer to create; send exactly one of `executeAt` and `delay`, and at most one of `payload` and `body`.
 * `maxDelay` and `collect` belong to `onConflict: debounce`, which takes `delay` only.
 */
export interface CreateTimer {
  /** The namespace's name. */
  readonly namespace: string;
  /** The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets. */
  readonly callbackUrl: string;
  /** The timer's id, unique in its namespace. */
  readonly id: string;
  /** An RFC 3339 instant with a time zone. */
  readonly executeAt?: InstantLike | undefined;
  /** A duration: 500ms, 30s, 5m, 1h30m, 7d. */
  readonly delay?: DurationLike | undefined;
  /**
   * What to do if a timer with this id exists, pending or finished and retained: replace it (the default), keep it
   * and return it, or reject the request; or debounce: fire once for all creates that follow one another, delay
   * after the latest.
   */
  readonly onConflict?: OnConflict | undefined;
  /**
   * With onConflict debounce, required: the timer fires at the latest this long after the first create for which
   * it stands. Of different values, each is kept.
   */
  readonly maxDelay?: DurationLike | undefined;
  /**
   * With onConflict debounce: the callback's payload is an array of the payloads of all creates for which it
   * stands, at most this many, and 100 KiB. Without it, the payload is that of the latest create.
   */
  readonly collect?: number | undefined;
  /**
   * Makes the create safe to repeat: a timer with this id that was created with the same key is returned
   * unchanged, even after it has finished. Equivalent to the header Idempotency-Key.
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and objects. With
   * GET and HEAD, which send none, only null.
   */
  readonly payload?: unknown;
  /** The whole body of the callback, instead of the envelope with the payload. */
  readonly body?: RawBody | undefined;
  /** The HTTP method of the callback. */
  readonly method?: CallbackMethod | undefined;
  /** Additional headers of the callback. The value [redacted] keeps the timer's stored value. */
  readonly headers?: Readonly<Record<string, string>> | null | undefined;
  /** Without one, each attempt uses the namespace's current policy. */
  readonly retryPolicy?: RetryPolicy | null | undefined;
  /** Timeout of one attempt, in seconds. Default 10. */
  readonly callbackTimeoutSeconds?: number | undefined;
  /** Labels to filter lists by. */
  readonly tags?: readonly string[] | undefined;
  /**
   * No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired
   * then, any other as failed.
   */
  readonly expireAfter?: DurationLike | undefined;
  /** What it is for, in one line; shown in lists and never sent to the callback. */
  readonly description?: string | null | undefined;
  /**
   * The flow that limits how many of its attempts begin and are in flight at once, if a rule of the namespace
   * matches it.
   */
  readonly flowKey?: string | null | undefined;
  /** The namespace's credential that its requests have; it goes to no other origin than the credential's own. */
  readonly credential?: string | null | undefined;
  /** Who is notified when it has failed, or expired. */
  readonly onFailure?: Hook | undefined;
  /** Who is notified when it has succeeded. */
  readonly onSuccess?: Hook | undefined;
  /**
   * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its
   * replay.
   */
  readonly onRecovery?: Hook | undefined;
}

/**
 * A callback body that is sent, and signed, exactly as given; send one of `json`, `text` and `base64`. The
 * fields that otherwise surround the payload are sent as headers: `tocsin-namespace`, `tocsin-timer-id`
 * (percent-encoded), `tocsin-execute-at`, `tocsin-fired-at`, `tocsin-attempt`.
 */
export interface RawBody {
  /** Any JSON, sent byte for byte as written; at most 102400 bytes. */
  readonly json?: unknown;
  /** Text, sent in UTF-8. */
  readonly text?: string | undefined;
  /** Bytes, in base64 with padding. */
  readonly base64?: string | undefined;
  /** The body's media type. Default: application/json, text/plain; charset=utf-8 or application/octet-stream. */
  readonly contentType?: string | undefined;
}

/**
 * How often and for how long failed attempts are retried. The delay grows from `initialInterval` by
 * `backoffMultiplier` up to `maxInterval`.
 */
export interface RetryPolicy {
  /** Maximum number of attempts, including the first. Default 10. */
  readonly maxAttempts?: number | undefined;
  /** No attempt starts later than this after the first. */
  readonly maxAttemptsDuration?: DurationLike | null | undefined;
  /** Delay before the second attempt. Default 5s, or maxInterval if shorter. */
  readonly initialInterval?: DurationLike | undefined;
  /** Factor by which each delay grows. Default 3. */
  readonly backoffMultiplier?: number | undefined;
  /** Maximum delay. Default 4h, or initialInterval if longer. */
  readonly maxInterval?: DurationLike | undefined;
}

/** Where a notification is sent, signed like a callback. */
export interface Hook {
  /** The http or https URL, or `nats://subject`, to notify. */
  readonly url: string;
  /** Additional headers of the notification. The value [redacted] keeps the stored value. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The credential that the notification has: of the namespace; for service calls, of that which
   * `agent.credentials_namespace` names.
   */
  readonly credential?: string | undefined;
}

/** Identifies a timer. */
export interface TimerName {
  /** The namespace's name. */
  readonly namespace: string;
  /** The timer's id, unique in its namespace. */
  readonly timerId: string;
}

/** A timer whose runs are wanted. */
export interface TimerHistory {
  /** The namespace's name. */
  readonly namespace: string;
  /** The timer's id, unique in its namespace. */
  readonly timerId: string;
  /** Maximum number of runs on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/**
 * Changes to a pending timer; absent fields stay unchanged. Null removes `headers`, `expireAfter`,
 * `description`, `flowKey`, `credential` and the hooks; a null `retryPolicy` returns to the namespace's policy.
 * `payload` and `body` replace one another. Send at most one of `executeAt` and `delay`.
 */
export interface UpdateTimer {
  /** The namespace's name. */
  readonly namespace: string;
  /** The timer's id, unique in its namespace. */
  readonly timerId: string;
  /** An RFC 3339 instant with a time zone. */
  readonly executeAt?: InstantLike | undefined;
  /** A duration: 500ms, 30s, 5m, 1h30m, 7d. */
  readonly delay?: DurationLike | undefined;
  /** The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets. */
  readonly callbackUrl?: string | undefined;
  /**
   * Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and objects. With
   * GET and HEAD, which send none, only null.
   */
  readonly payload?: unknown;
  /** The whole body of the callback, instead of the envelope with the payload. */
  readonly body?: RawBody | undefined;
  /** The HTTP method of the callback. */
  readonly method?: CallbackMethod | undefined;
  /** Additional headers of the callback. The value [redacted] keeps the timer's stored value. */
  readonly headers?: Readonly<Record<string, string>> | null | undefined;
  /** Without one, each attempt uses the namespace's current policy. */
  readonly retryPolicy?: RetryPolicy | null | undefined;
  /** Timeout of one attempt, in seconds. Default 10. */
  readonly callbackTimeoutSeconds?: number | undefined;
  /** Labels to filter lists by. */
  readonly tags?: readonly string[] | undefined;
  /**
   * No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired
   * then, any other as failed.
   */
  readonly expireAfter?: DurationLike | null | undefined;
  /** What it is for, in one line; shown in lists and never sent to the callback. */
  readonly description?: string | null | undefined;
  /**
   * The flow that limits how many of its attempts begin and are in flight at once, if a rule of the namespace
   * matches it.
   */
  readonly flowKey?: string | null | undefined;
  /** The namespace's credential that its requests have; it goes to no other origin than the credential's own. */
  readonly credential?: string | null | undefined;
  /** Who is notified when it has failed, or expired. */
  readonly onFailure?: Hook | null | undefined;
  /** Who is notified when it has succeeded. */
  readonly onSuccess?: Hook | null | undefined;
  /**
   * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its
   * replay.
   */
  readonly onRecovery?: Hook | null | undefined;
}

/** Finished timers to fire again, at once unless `executeAt` or `delay` is given. Send at most one of these. */
export interface ReplayTimers {
  /** The namespace's name. */
  readonly namespace: string;
  /** Ids of timers. */
  readonly ids: readonly string[];
  /** An RFC 3339 instant with a time zone. */
  readonly executeAt?: InstantLike | undefined;
  /** A duration: 500ms, 30s, 5m, 1h30m, 7d. */
  readonly delay?: DurationLike | undefined;
  /** The http or https URL to call from now on, instead of each timer's own. */
  readonly setUrl?: string | undefined;
  /**
   * Additional headers of the callback from now on, instead of each timer's own; null: none. The value [redacted]
   * keeps the timer's stored value.
   */
  readonly setHeaders?: Readonly<Record<string, string>> | null | undefined;
}

/** Filters of a list of timers; a timer must match all of them. */
export interface ListTimers {
  /** The namespace's name; `*`: all that the API key has access to. */
  readonly namespace: string;
  /** A status, or several: timers with any of them match. */
  readonly status?: readonly TimerStatus[] | undefined;
  /** A timer must have all of these tags. */
  readonly tags?: readonly string[] | undefined;
  /** Prefix of the timers' ids. */
  readonly idPrefix?: string | undefined;
  /** An RFC 3339 instant with a time zone. */
  readonly executeAfter?: InstantLike | undefined;
  /** An RFC 3339 instant with a time zone. */
  readonly executeBefore?: InstantLike | undefined;
  /** A part of the callback's host and path; case does not matter. */
  readonly destination?: string | undefined;
  /** A part of the last error; case does not matter. */
  readonly error?: string | undefined;
  /** Adds to each timer that is due what it does now, or waits for (explanation). */
  readonly explain?: boolean | undefined;
  /** Maximum number of timers on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** Timers to create in one request; an invalid one fails without affecting the others. */
export interface BatchCreateTimers {
  /** The timers to create. */
  readonly timers: readonly CreateTimer[];
}

/**
 * A schedule to create; send exactly one of `cron` and `every`, and at most one of `payload` and `body`. Without
 * `managedBy` an existing schedule keeps it.
 */
export interface CreateSchedule {
  /** The namespace's name. */
  readonly namespace: string;
  /** The schedule's id, unique among its namespace's schedules. */
  readonly id: string;
  /** The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets. */
  readonly callbackUrl: string;
  /** The declaration that it comes from, such as the name of a repository. */
  readonly managedBy?: string | undefined;
  /** Whether a new schedule begins paused; one that exists stays as it is. Default false. */
  readonly paused?: boolean | undefined;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
  /** Writes nothing: the response shows what would be written. Default false. */
  readonly dryRun?: boolean | undefined;
  /**
   * Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and objects. With
   * GET and HEAD, which send none, only null.
   */
  readonly payload?: unknown;
  /** The whole body of the callback, instead of the envelope with the payload. */
  readonly body?: RawBody | undefined;
  /** The HTTP method of the callback. */
  readonly method?: CallbackMethod | undefined;
  /** Additional headers of the callback. The value [redacted] keeps the timer's stored value. */
  readonly headers?: Readonly<Record<string, string>> | null | undefined;
  /** Without one, each attempt uses the namespace's current policy. */
  readonly retryPolicy?: RetryPolicy | null | undefined;
  /** Timeout of one attempt, in seconds. Default 10. */
  readonly callbackTimeoutSeconds?: number | undefined;
  /** Labels to filter lists by. */
  readonly tags?: readonly string[] | undefined;
  /**
   * No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired
   * then, any other as failed.
   */
  readonly expireAfter?: DurationLike | undefined;
  /** What it is for, in one line; shown in lists and never sent to the callback. */
  readonly description?: string | null | undefined;
  /**
   * The flow that limits how many of its attempts begin and are in flight at once, if a rule of the namespace
   * matches it.
   */
  readonly flowKey?: string | null | undefined;
  /** The namespace's credential that its requests have; it goes to no other origin than the credential's own. */
  readonly credential?: string | null | undefined;
  /** Who is notified when it has failed, or expired. */
  readonly onFailure?: Hook | undefined;
  /** Who is notified when it has succeeded. */
  readonly onSuccess?: Hook | undefined;
  /**
   * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its
   * replay.
   */
  readonly onRecovery?: Hook | undefined;
  /**
   * A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds
   * first, or @hourly, @daily, @weekly, @monthly, @yearly.
   */
  readonly cron?: string | undefined;
  /** The IANA time zone of cron. Default UTC. */
  readonly timeZone?: string | undefined;
  /** An interval of 1s to 366d, by elapsed time, instead of cron. */
  readonly every?: DurationLike | undefined;
  /** An instant from which every counts, in both directions. Default: the schedule's creation. */
  readonly anchor?: InstantLike | undefined;
  /** No instant is earlier than this. */
  readonly startAt?: InstantLike | undefined;
  /** All instants are earlier than this. */
  readonly endAt?: InstantLike | undefined;
  /** How many instants it has; afterwards it ends. */
  readonly maxOccurrences?: number | undefined;
  /**
   * Longest delay of an instant; none is delayed past the next one. The delay depends only on the schedule and the
   * instant. Default 0s.
   */
  readonly jitter?: DurationLike | undefined;
  /**
   * What becomes of instants that pass while the schedule cannot fire, or while its previous occurrence has not
   * finished. latest: the last of them fires (the default); all: each fires; none: none fires.
   */
  readonly catchUp?: CatchUp | undefined;
  /** Instants that are later than this are missed. Default 24h; with catchUp none, 60s. */
  readonly catchUpWindow?: DurationLike | undefined;
  /** Pauses the schedule when this many occurrences in a row have failed. Default 0: never. */
  readonly pauseAfterFailures?: number | undefined;
  /** Calendars: only instants on a date of one of them fire. Empty: no restriction. */
  readonly only?: readonly string[] | undefined;
  /** Calendars: no instant on a date of any of them fires. */
  readonly skip?: readonly string[] | undefined;
  /**
   * What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to the same
   * time of day on the next date that is allowed, unless the rule has instants on that date or before it. next
   * requires cron with fixed times.
   */
  readonly onSkipped?: OnSkipped | undefined;
  /** Who is notified when instants did not fire, though the schedule was not paused. */
  readonly onMissed?: Hook | undefined;
  /** Who is notified when the schedule has paused itself after failures in a row. */
  readonly onPaused?: Hook | undefined;
}

/** Identifies a schedule. */
export interface ScheduleName {
  /** The namespace's name. */
  readonly namespace: string;
  /** The schedule's id, unique among its namespace's schedules. */
  readonly scheduleId: string;
}

/**
 * Changes to a schedule; absent fields stay unchanged. A new `cron` replaces `every` and the other way round.
 * Null removes `anchor`, `startAt`, `endAt`, `maxOccurrences`, `expireAfter`, `headers`, `description`,
 * `flowKey`, `credential`, `managedBy` and the hooks, and restores the default of `catchUpWindow` and
 * `retryPolicy`.
 */
export interface UpdateSchedule {
  /** The namespace's name. */
  readonly namespace: string;
  /** The schedule's id, unique among its namespace's schedules. */
  readonly scheduleId: string;
  /** The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets. */
  readonly callbackUrl?: string | undefined;
  /** The declaration that it comes from, such as the name of a repository. */
  readonly managedBy?: string | null | undefined;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
  /**
   * Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and objects. With
   * GET and HEAD, which send none, only null.
   */
  readonly payload?: unknown;
  /** The whole body of the callback, instead of the envelope with the payload. */
  readonly body?: RawBody | undefined;
  /** The HTTP method of the callback. */
  readonly method?: CallbackMethod | undefined;
  /** Additional headers of the callback. The value [redacted] keeps the timer's stored value. */
  readonly headers?: Readonly<Record<string, string>> | null | undefined;
  /** Without one, each attempt uses the namespace's current policy. */
  readonly retryPolicy?: RetryPolicy | null | undefined;
  /** Timeout of one attempt, in seconds. Default 10. */
  readonly callbackTimeoutSeconds?: number | undefined;
  /** Labels to filter lists by. */
  readonly tags?: readonly string[] | undefined;
  /**
   * No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired
   * then, any other as failed.
   */
  readonly expireAfter?: DurationLike | null | undefined;
  /** What it is for, in one line; shown in lists and never sent to the callback. */
  readonly description?: string | null | undefined;
  /**
   * The flow that limits how many of its attempts begin and are in flight at once, if a rule of the namespace
   * matches it.
   */
  readonly flowKey?: string | null | undefined;
  /** The namespace's credential that its requests have; it goes to no other origin than the credential's own. */
  readonly credential?: string | null | undefined;
  /** Who is notified when it has failed, or expired. */
  readonly onFailure?: Hook | null | undefined;
  /** Who is notified when it has succeeded. */
  readonly onSuccess?: Hook | null | undefined;
  /**
   * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its
   * replay.
   */
  readonly onRecovery?: Hook | null | undefined;
  /**
   * A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds
   * first, or @hourly, @daily, @weekly, @monthly, @yearly.
   */
  readonly cron?: string | undefined;
  /** The IANA time zone of cron. Default UTC. */
  readonly timeZone?: string | undefined;
  /** An interval of 1s to 366d, by elapsed time, instead of cron. */
  readonly every?: DurationLike | undefined;
  /** An instant from which every counts, in both directions. Default: the schedule's creation. */
  readonly anchor?: InstantLike | null | undefined;
  /** No instant is earlier than this. */
  readonly startAt?: InstantLike | null | undefined;
  /** All instants are earlier than this. */
  readonly endAt?: InstantLike | null | undefined;
  /** How many instants it has; afterwards it ends. */
  readonly maxOccurrences?: number | null | undefined;
  /**
   * Longest delay of an instant; none is delayed past the next one. The delay depends only on the schedule and the
   * instant. Default 0s.
   */
  readonly jitter?: DurationLike | undefined;
  /**
   * What becomes of instants that pass while the schedule cannot fire, or while its previous occurrence has not
   * finished. latest: the last of them fires (the default); all: each fires; none: none fires.
   */
  readonly catchUp?: CatchUp | undefined;
  /** Instants that are later than this are missed. Default 24h; with catchUp none, 60s. */
  readonly catchUpWindow?: DurationLike | null | undefined;
  /** Pauses the schedule when this many occurrences in a row have failed. Default 0: never. */
  readonly pauseAfterFailures?: number | undefined;
  /** Calendars: only instants on a date of one of them fire. Empty: no restriction. */
  readonly only?: readonly string[] | undefined;
  /** Calendars: no instant on a date of any of them fires. */
  readonly skip?: readonly string[] | undefined;
  /**
   * What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to the same
   * time of day on the next date that is allowed, unless the rule has instants on that date or before it. next
   * requires cron with fixed times.
   */
  readonly onSkipped?: OnSkipped | undefined;
  /** Who is notified when instants did not fire, though the schedule was not paused. */
  readonly onMissed?: Hook | null | undefined;
  /** Who is notified when the schedule has paused itself after failures in a row. */
  readonly onPaused?: Hook | null | undefined;
}

/** Which schedules are listed. */
export interface ListSchedules {
  /** The namespace's name; `*`: all that the API key has access to. */
  readonly namespace: string;
  /** active, paused, or both: schedules with any of them match. Ended ones are not listed. */
  readonly status?: LiveScheduleStatus | undefined;
  /** The declaration that it comes from, such as the name of a repository. */
  readonly managedBy?: string | undefined;
  /** Maximum number of schedules on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** The range of instants that fire once more. */
export interface BackfillSchedule {
  /** The namespace's name. */
  readonly namespace: string;
  /** The schedule's id, unique among its namespace's schedules. */
  readonly scheduleId: string;
  /** Only instants at or after this one. */
  readonly after: InstantLike;
  /** Only instants before this one. */
  readonly before: InstantLike;
}

/** An instant of a schedule that is still to come. */
export interface SkipSchedule {
  /** The namespace's name. */
  readonly namespace: string;
  /** The schedule's id, unique among its namespace's schedules. */
  readonly scheduleId: string;
  /** The instant, exactly as schedules/preview of the schedule shows it. */
  readonly instant: InstantLike;
}

/** The failed occurrences that fire again. */
export interface ReplaySchedule {
  /** The namespace's name. */
  readonly namespace: string;
  /** The schedule's id, unique among its namespace's schedules. */
  readonly scheduleId: string;
  /** Their instants. */
  readonly instants: readonly InstantLike[];
}

/**
 * A definition, with exactly one of `cron` and `every`, or a schedule: `namespace` and `scheduleId`. A
 * definition with `only` or `skip` requires the `namespace` of the calendars.
 */
export interface PreviewSchedule {
  /** The namespace's name. */
  readonly namespace?: string | undefined;
  /** The schedule's id, unique among its namespace's schedules. */
  readonly scheduleId?: string | undefined;
  /**
   * A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds
   * first, or @hourly, @daily, @weekly, @monthly, @yearly.
   */
  readonly cron?: string | undefined;
  /** The IANA time zone of cron. Default UTC. */
  readonly timeZone?: string | undefined;
  /** An interval of 1s to 366d, by elapsed time, instead of cron. */
  readonly every?: DurationLike | undefined;
  /** An instant from which every counts, in both directions. Default: the schedule's creation. */
  readonly anchor?: InstantLike | undefined;
  /** No instant is earlier than this. */
  readonly startAt?: InstantLike | undefined;
  /** All instants are earlier than this. */
  readonly endAt?: InstantLike | undefined;
  /** Calendars: only instants on a date of one of them fire. Empty: no restriction. */
  readonly only?: readonly string[] | undefined;
  /** Calendars: no instant on a date of any of them fires. */
  readonly skip?: readonly string[] | undefined;
  /**
   * What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to the same
   * time of day on the next date that is allowed, unless the rule has instants on that date or before it. next
   * requires cron with fixed times.
   */
  readonly onSkipped?: OnSkipped | undefined;
  /** Maximum number of instants. Default 10. */
  readonly count?: number | undefined;
}

/** The schedule whose occurrences are wanted. */
export interface ScheduleHistory {
  /** The namespace's name. */
  readonly namespace: string;
  /** The schedule's id, unique among its namespace's schedules. */
  readonly scheduleId: string;
  /** Maximum number of occurrences on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** A schedule to delete. */
export interface DeleteSchedule {
  /** The namespace's name. */
  readonly namespace: string;
  /** The schedule's id, unique among its namespace's schedules. */
  readonly scheduleId: string;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
}

/** Which failures to group, and how. */
export interface ListFailures {
  /** The namespace's name; `*`: all that the API key has access to. */
  readonly namespace?: string | undefined;
  /** The tenant whose service calls are meant, instead of a namespace; `*`: all that the API key has access to. */
  readonly tenant?: string | undefined;
  /** Only failures since this instant. */
  readonly since?: InstantLike | undefined;
  /** What the failures of a group have in common. Default: all of these. */
  readonly groupBy?: readonly FailureGroupedBy[] | undefined;
  /** Maximum number of groups. Default 50. */
  readonly limit?: number | undefined;
}

/** Which failures to list: those of a group, or all. */
export interface ListFailureMembers {
  /** The namespace's name; `*`: all that the API key has access to. */
  readonly namespace?: string | undefined;
  /** The tenant whose service calls are meant, instead of a namespace; `*`: all that the API key has access to. */
  readonly tenant?: string | undefined;
  /** The URL that was called, without credentials and query. */
  readonly destination?: string | undefined;
  /** The stable code of the last error, without details. */
  readonly error?: string | undefined;
  /** What failed. */
  readonly kind?: FailedKind | undefined;
  /** Only failures since this instant. */
  readonly since?: InstantLike | undefined;
  /** Maximum number of failures on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** Which failures to remove from the list: by their ids, or those of a group. */
export interface DismissFailures {
  /** The namespace's name. */
  readonly namespace?: string | undefined;
  /** The tenant whose service calls are meant, instead of a namespace. */
  readonly tenant?: string | undefined;
  /** The failureId of each, up to 1,000. */
  readonly ids?: readonly string[] | undefined;
  /** The URL that was called, without credentials and query. */
  readonly destination?: string | undefined;
  /** The stable code of the last error, without details. */
  readonly error?: string | undefined;
  /** What failed. */
  readonly kind?: FailedKind | undefined;
  /** With `true` and no other field: all failures of it. */
  readonly all?: boolean | undefined;
}

/** A job to create: of a namespace or, to replay or delete service calls, of a tenant. */
export interface CreateJob {
  /**
   * What is done with each row: cancel, shift and setUrl of timers; pause, resume, delete and setUrl of schedules;
   * replay of failures; delete of service calls.
   */
  readonly action: JobAction;
  /** What is changed: timers, schedules, failures, or calls that wait. */
  readonly of: JobKind;
  /** The namespace's name; `*`: all that the API key has access to. */
  readonly namespace?: string | undefined;
  /** The tenant whose service calls are meant, instead of a namespace; `*`: all that the API key has access to. */
  readonly tenant?: string | undefined;
  readonly filter?: JobFilter | undefined;
  /** Must be true if the filter is empty: every row is changed. */
  readonly all?: boolean | undefined;
  /** By how much shift moves the instants: a duration, with - to an earlier one. */
  readonly shiftBy?: string | undefined;
  /** The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets. */
  readonly url?: string | undefined;
  /** Rows a second that the job changes at most, in the whole cluster. Default 500. */
  readonly ratePerSecond?: number | undefined;
  /** Only counts the rows that match. Default false. */
  readonly dryRun?: boolean | undefined;
  /** The job fails instead of changing more rows, for example than a dry run has counted. */
  readonly matchMax?: number | undefined;
  /** Makes the request safe to repeat: the same key answers the same job. */
  readonly idempotencyKey?: string | undefined;
}

/**
 * Which rows a job changes: pending timers, schedules that have not ended, failures that are listed, or service
 * calls that wait for their due time or for a retry, that match all of it. It is checked again when each change
 * becomes durable. Rows created after the job stay as they are.
 */
export interface JobFilter {
  /** A row must have all of these tags. Not of failures, but of service calls. */
  readonly tags?: readonly string[] | undefined;
  /** Prefix of the ids. */
  readonly idPrefix?: string | undefined;
  /** A part of the URL's host and path; case does not matter. Of failures: the destination of a group. */
  readonly destination?: string | undefined;
  /**
   * A part of the last error; case does not matter. Of failures: the error of a group. Of timers and failures
   * only.
   */
  readonly error?: string | undefined;
  /** Only timers and service calls due at or after this instant, or failures of such runs. */
  readonly executeAfter?: InstantLike | undefined;
  /** Only timers and service calls due before this instant, or failures of such runs. */
  readonly executeBefore?: InstantLike | undefined;
  /** Only rows created before this instant, or failed before it. Default: the job's creation. */
  readonly createdBefore?: InstantLike | undefined;
  /** Only failures of this kind. Of failures only. */
  readonly kind?: FailedKind | undefined;
  /** Only rows created at or after this instant: failed then, or submitted if it is a service call. */
  readonly createdAfter?: InstantLike | undefined;
  /** A part of the name, with letters A to Z in either case. Of service calls only. */
  readonly name?: string | undefined;
  /** Only calls that wait for this. Of service calls only. */
  readonly status?: WaitingStatus | undefined;
}

/** Names a job. */
export interface JobName {
  /** The job's id. */
  readonly jobId: string;
}

/** Which jobs are listed. */
export interface ListJobs {
  /** The namespace's name; `*`: all that the API key has access to. */
  readonly namespace?: string | undefined;
  /** The tenant whose service calls are meant, instead of a namespace; `*`: all that the API key has access to. */
  readonly tenant?: string | undefined;
}

/** Another rate of a job. */
export interface SetJobRate {
  /** The job's id. */
  readonly jobId: string;
  /** Rows a second that the job changes at most, in the whole cluster. Default 500. */
  readonly ratePerSecond: number;
}

/** A namespace to create. */
export interface CreateNamespace {
  /** The namespace's name. */
  readonly name: string;
  /** The number of shards that its timers are spread over. Cannot be changed later. */
  readonly numShards?: number | undefined;
  /** Which finished timers stay visible. */
  readonly history?: HistoryMode | undefined;
  /** How long finished timers stay visible; at most 3653d. */
  readonly retention?: DurationLike | undefined;
  /**
   * What a 2xx response to a callback means. standard: success, unless its body is a JSON object with ok: false or
   * nextExecuteAt. strict: success only with an empty body or ok: true.
   */
  readonly answers?: CallbackAnswers | undefined;
  /** The policy of timers without their own; null for the default: 10 attempts in 8.5 h. */
  readonly retryPolicy?: RetryPolicy | null | undefined;
  /** The limits of all attempts of the namespace together. */
  readonly limits?: FlowLimits | undefined;
  /** Limits on what its clients create. */
  readonly quotas?: Quotas | undefined;
  /**
   * Due timers with the same URL, method, headers and timeout are sent in one request, which the receiver answers
   * timer by timer.
   */
  readonly callbackBatch?: CallbackBatch | undefined;
  /**
   * Where what becomes of its timers, schedules and monitors is published: below this subject of NATS, such as
   * `shop.events.timer.failed`, with JetStream’s acknowledgement. The setting `nats_targets` has to list the
   * subject for the namespace. Events without a sink are not kept.
   */
  readonly eventSink?: string | undefined;
  /** Who is notified when it has failed, or expired. */
  readonly onFailure?: Hook | undefined;
  /** Who is notified when it has succeeded. */
  readonly onSuccess?: Hook | undefined;
  /**
   * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its
   * replay.
   */
  readonly onRecovery?: Hook | undefined;
  /** Who is notified when instants did not fire, though the schedule was not paused. */
  readonly onMissed?: Hook | undefined;
  /** Who is notified when the schedule has paused itself after failures in a row. */
  readonly onPaused?: Hook | undefined;
  /** Who is notified when it is late, and when its job reports a failure, or an occurrence fails. */
  readonly onLate?: Hook | undefined;
  /** Secret that signs its callbacks (Standard Webhooks): whsec_ and base64. */
  readonly secret?: string | undefined;
  /** The declaration that it comes from, such as the name of a repository. */
  readonly managedBy?: string | undefined;
}

/**
 * Limits of attempts; send a rate, a parallelism, or both. In any time at most `burst` attempts begin, and those
 * of the rate.
 */
export interface FlowLimits {
  readonly rate?: FlowRate | undefined;
  /**
   * How many attempts may begin at once if none did for a while. Requires a rate; default 1: they are evenly
   * spaced.
   */
  readonly burst?: number | undefined;
  /** How many attempts may be in flight at once. */
  readonly parallelism?: number | undefined;
  /**
   * Whether the timers of each key begin one at a time, in the order of their instants, each when the one before
   * has ended, retries included. Only in `perKey`, without another parallelism than 1, and in a namespace with
   * `numShards` 1. Default false.
   */
  readonly ordered?: boolean | undefined;
}

/** So many attempts within a time, evenly spread. */
export interface FlowRate {
  /** How many attempts may begin in that time. */
  readonly count: number;
  /** The time: 1s to 1d. */
  readonly per: DurationLike;
}

/**
 * Quotas of a namespace; null removes one, and an absent one stays unchanged. What exceeds one is refused with
 * QUOTA_EXCEEDED.
 */
export interface Quotas {
  /** Its timers that may be pending at once; not schedules. */
  readonly pending?: number | null | undefined;
  /** Timers and schedules created in it, and monitors put, in a second, at most; with one second's worth at once. */
  readonly createsPerSecond?: number | null | undefined;
  /** Bytes that the payload or the raw body of one timer or schedule may have. */
  readonly payloadBytes?: number | null | undefined;
}

/** How due timers of one receiver are sent together. */
export interface CallbackBatch {
  /** How many timers one request has at most. */
  readonly max: number;
  /** How long the first due timer of a request waits for others: 0s to 5s. Default 100ms. */
  readonly linger?: DurationLike | undefined;
}

/** Names a namespace. */
export interface GetNamespace {
  /** The namespace's name. */
  readonly name: string;
}

/**
 * Changes to a namespace; absent fields stay unchanged. The hooks are those of timers, schedules and monitors
 * without their own for the same event; null removes one, and null removes `managedBy`, `limits`,
 * `callbackBatch` and `eventSink`, which are otherwise replaced as a whole.
 */
export interface UpdateNamespace {
  /** The namespace's name. */
  readonly name: string;
  /** Which finished timers stay visible. */
  readonly history?: HistoryMode | undefined;
  /** How long finished timers stay visible; at most 3653d. */
  readonly retention?: DurationLike | undefined;
  /** A new signing secret; null removes the secret. */
  readonly secret?: string | null | undefined;
  /** While true, none of its timers fires. */
  readonly paused?: boolean | undefined;
  /**
   * What a 2xx response to a callback means. standard: success, unless its body is a JSON object with ok: false or
   * nextExecuteAt. strict: success only with an empty body or ok: true.
   */
  readonly answers?: CallbackAnswers | undefined;
  /** The policy of timers without their own; null for the default: 10 attempts in 8.5 h. */
  readonly retryPolicy?: RetryPolicy | null | undefined;
  /** The limits of all attempts of the namespace together. */
  readonly limits?: FlowLimits | null | undefined;
  /** Changes to its quotas; null removes all. */
  readonly quotas?: Quotas | null | undefined;
  /**
   * Due timers with the same URL, method, headers and timeout are sent in one request, which the receiver answers
   * timer by timer.
   */
  readonly callbackBatch?: CallbackBatch | null | undefined;
  /**
   * Where what becomes of its timers, schedules and monitors is published: below this subject of NATS, such as
   * `shop.events.timer.failed`, with JetStream’s acknowledgement. The setting `nats_targets` has to list the
   * subject for the namespace. Events without a sink are not kept.
   */
  readonly eventSink?: string | null | undefined;
  /** Who is notified when it has failed, or expired. */
  readonly onFailure?: Hook | null | undefined;
  /** Who is notified when it has succeeded. */
  readonly onSuccess?: Hook | null | undefined;
  /**
   * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its
   * replay.
   */
  readonly onRecovery?: Hook | null | undefined;
  /** Who is notified when instants did not fire, though the schedule was not paused. */
  readonly onMissed?: Hook | null | undefined;
  /** Who is notified when the schedule has paused itself after failures in a row. */
  readonly onPaused?: Hook | null | undefined;
  /** Who is notified when it is late, and when its job reports a failure, or an occurrence fails. */
  readonly onLate?: Hook | null | undefined;
  /** The declaration that it comes from, such as the name of a repository. */
  readonly managedBy?: string | null | undefined;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
  /** Writes nothing: the response shows what would be written. Default false. */
  readonly dryRun?: boolean | undefined;
}

/** A namespace to delete. */
export interface DeleteNamespace {
  /** The namespace's name. */
  readonly name: string;
  /** Delete it although timers or schedules are pending in it. Default false. */
  readonly cancelPending?: boolean | undefined;
  /** Rows a second that the job changes at most, in the whole cluster. Default 500. */
  readonly ratePerSecond?: number | undefined;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
  /** Makes the request safe to repeat: the same key answers the same job. */
  readonly idempotencyKey?: string | undefined;
}

/** The rotation of a namespace's signing secret. */
export interface RotateSecret {
  /** The namespace's name. */
  readonly name: string;
  /** The new secret: whsec_ and base64. Without one, the server generates it. */
  readonly secret?: string | undefined;
  /** How long the previous secret keeps signing: at most 30d; 0s: not at all. Default 24h. */
  readonly grace?: DurationLike | undefined;
  /** Rotate even during the grace period of an earlier rotation. Default false. */
  readonly force?: boolean | undefined;
}

/**
 * A rule with all its limits; send at least one of `perKey`, `total`, `callbackBatch` and a true
 * `closeOnRetryAfter`. Without `managedBy` the rule keeps it; null removes it.
 */
export interface PutFlow {
  /** The namespace's name. */
  readonly namespace: string;
  /** The flow key that the rule is for, or a prefix of keys, which ends with a colon. */
  readonly match: string;
  /** The limits of each flow key by itself. */
  readonly perKey?: FlowLimits | undefined;
  /** The limits of all flow keys of the rule together. */
  readonly total?: FlowLimits | undefined;
  /**
   * Whether an answer 429 or 503 with Retry-After lets nothing more of its flow key begin until then. Default
   * false.
   */
  readonly closeOnRetryAfter?: boolean | undefined;
  /**
   * Due timers with the same URL, method, headers and timeout are sent in one request, which the receiver answers
   * timer by timer.
   */
  readonly callbackBatch?: CallbackBatch | undefined;
  /** The declaration that it comes from, such as the name of a repository. */
  readonly managedBy?: string | null | undefined;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
}

/** Names a rule. */
export interface FlowName {
  /** The namespace's name. */
  readonly namespace: string;
  /** The flow key that the rule is for, or a prefix of keys, which ends with a colon. */
  readonly match: string;
}

/** The namespace whose rules are wanted. */
export interface ListFlows {
  /** The namespace's name. */
  readonly namespace: string;
  /** Maximum number of rules on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** A rule to pause. */
export interface PauseFlow {
  /** The namespace's name. */
  readonly namespace: string;
  /** The flow key that the rule is for, or a prefix of keys, which ends with a colon. */
  readonly match: string;
  /** When it goes on; without it, when it is resumed. */
  readonly until?: InstantLike | undefined;
}

/** A rule to delete. */
export interface DeleteFlow {
  /** The namespace's name. */
  readonly namespace: string;
  /** The flow key that the rule is for, or a prefix of keys, which ends with a colon. */
  readonly match: string;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
}

/**
 * A calendar with all its dates; send at least one of `dates`, `ranges` and `weekdays`. Without `managedBy` the
 * calendar keeps it; null removes it.
 */
export interface PutCalendar {
  /** The namespace's name. */
  readonly namespace: string;
  /** The calendar's name, unique in its namespace. */
  readonly name: string;
  /** The IANA time zone in which its dates begin and end. Default UTC. */
  readonly timeZone?: string | undefined;
  /** Single dates, as 2027-12-25. */
  readonly dates?: readonly string[] | undefined;
  /** Ranges of dates, both ends included. */
  readonly ranges?: readonly DateRange[] | undefined;
  /** Weekdays, of every week. */
  readonly weekdays?: readonly Weekday[] | undefined;
  /** What it is for, in one line; shown in lists. */
  readonly description?: string | undefined;
  /** The declaration that it comes from, such as the name of a repository. */
  readonly managedBy?: string | null | undefined;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
}

/** Dates from the first to the last. */
export interface DateRange {
  /** The first date. */
  readonly first: string;
  /** The last date. */
  readonly last: string;
}

/** Names a calendar. */
export interface CalendarId {
  /** The namespace's name. */
  readonly namespace: string;
  /** The calendar's name, unique in its namespace. */
  readonly name: string;
}

/** The namespace whose calendars are wanted. */
export interface ListCalendars {
  /** The namespace's name. */
  readonly namespace: string;
  /** Maximum number of calendars on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** A calendar to delete. */
export interface DeleteCalendar {
  /** The namespace's name. */
  readonly namespace: string;
  /** The calendar's name, unique in its namespace. */
  readonly name: string;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
}

/**
 * A credential with all that it has. A secret that is left out keeps its stored value, unless `hosts`,
 * `tokenUrl` or `ca` would have it sent elsewhere; it is never returned. Without `managedBy` the credential
 * keeps it; null removes it.
 */
export interface PutCredential {
  /** How a request identifies itself. */
  readonly type: CredentialType;
  /** The namespace's name. */
  readonly namespace: string;
  /** The credential's name, unique in its namespace. */
  readonly name: string;
  /**
   * Where it may be sent, and nowhere else: `host` or `host:port` for HTTPS, `http://host:port` for plain HTTP.
   * Without any, only this machine's own addresses.
   */
  readonly hosts?: readonly string[] | undefined;
  /** Of basic: the user's name. */
  readonly username?: string | undefined;
  /** Of oauth2ClientCredentials: the token endpoint. */
  readonly tokenUrl?: string | undefined;
  /** Of oauth2ClientCredentials: the client's id. */
  readonly clientId?: string | undefined;
  /**
   * Of oauth2ClientCredentials: whether the token endpoint gets the client's secret in the header Authorization
   * (`basic`, the default) or in the body (`post`).
   */
  readonly clientAuthentication?: ClientAuth | undefined;
  /** Of oauth2ClientCredentials: the scopes to ask for, with spaces between. */
  readonly scope?: string | undefined;
  /** Of jwt: its `aud`. Of oauth2ClientCredentials: the parameter `audience`. */
  readonly audience?: string | undefined;
  /** Of jwt: how long each is valid, 1m to 1h. Default 10m. */
  readonly lifetime?: string | undefined;
  /** Of mtls: the client's certificate in PEM, followed by those that lead to its authority. */
  readonly certificate?: string | undefined;
  /**
   * Certificates in PEM of the authorities that are trusted for its hosts, instead of those that the system
   * trusts.
   */
  readonly ca?: string | undefined;
  /** What it is for, in one line; shown in lists. */
  readonly description?: string | undefined;
  /** Of basic: the password. */
  readonly password?: string | undefined;
  /** Of bearer: the token. */
  readonly token?: string | undefined;
  /** Of oauth2ClientCredentials: the client's secret. */
  readonly clientSecret?: string | undefined;
  /** Of mtls: the certificate's private key in PEM, without a password. */
  readonly privateKey?: string | undefined;
  /** The declaration that it comes from, such as the name of a repository. */
  readonly managedBy?: string | null | undefined;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
  /** Writes nothing: the response shows what would be written. Default false. */
  readonly dryRun?: boolean | undefined;
}

/** Names a credential. */
export interface CredentialId {
  /** The namespace's name. */
  readonly namespace: string;
  /** The credential's name, unique in its namespace. */
  readonly name: string;
}

/** The namespace whose credentials are wanted. */
export interface ListCredentials {
  /** The namespace's name. */
  readonly namespace: string;
  /** Maximum number of credentials on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** A credential to try. */
export interface TestCredential {
  /** The namespace's name. */
  readonly namespace: string;
  /** The credential's name, unique in its namespace. */
  readonly name: string;
  /** A URL to which it may go. HEAD is sent there with it. */
  readonly url?: string | undefined;
}

/** A credential to delete. */
export interface DeleteCredential {
  /** The namespace's name. */
  readonly namespace: string;
  /** The credential's name, unique in its namespace. */
  readonly name: string;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
}

/**
 * A monitor with all its fields; send exactly one of `cron`, `every` and `schedule`. Without `managedBy` an
 * existing monitor keeps it.
 */
export interface PutMonitor {
  /** The namespace's name. */
  readonly namespace: string;
  /** The monitor's id, unique among its namespace's monitors. */
  readonly id: string;
  /**
   * A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds
   * first, or @hourly, @daily, @weekly, @monthly, @yearly.
   */
  readonly cron?: string | undefined;
  /** The IANA time zone of cron. Default UTC. */
  readonly timeZone?: string | undefined;
  /** A report is expected so long after the last one; 1s to 366d, instead of cron. */
  readonly every?: DurationLike | undefined;
  /**
   * The id of a schedule of the namespace that it watches, instead of cron or every: it needs no ping, and is late
   * when an occurrence has not ended grace after its instant. It expects nothing while the schedule is paused, or
   * after its end.
   */
  readonly schedule?: string | undefined;
  /** How long after the expected instant a report may come, or an occurrence end. Default 5m; 1s to 31d. */
  readonly grace?: DurationLike | undefined;
  /** While it is late, notify again so often; at least 1m. Default: once. */
  readonly repeat?: DurationLike | undefined;
  /** Who is notified when it is late, and when its job reports a failure, or an occurrence fails. */
  readonly onLate?: Hook | undefined;
  /** Who is notified when its job succeeds after it was late or had failed. */
  readonly onRecovery?: Hook | undefined;
  /** Labels to filter lists by. */
  readonly tags?: readonly string[] | undefined;
  /** What it is for, in one line; shown in lists and never sent to the callback. */
  readonly description?: string | null | undefined;
  /** The declaration that it comes from, such as the name of a repository. */
  readonly managedBy?: string | undefined;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
  /** Writes nothing: the response shows what would be written. Default false. */
  readonly dryRun?: boolean | undefined;
}

/** Identifies a monitor. */
export interface MonitorName {
  /** The namespace's name. */
  readonly namespace: string;
  /** The monitor's id, unique among its namespace's monitors. */
  readonly id: string;
}

/** Which monitors are listed. */
export interface ListMonitors {
  /** The namespace's name; `*`: all that the API key has access to. */
  readonly namespace: string;
  /** Monitors with any of these states match. */
  readonly state?: MonitorState | undefined;
  /** Monitors with this tag match. */
  readonly tag?: string | undefined;
  /** The declaration that it comes from, such as the name of a repository. */
  readonly managedBy?: string | undefined;
  /** Monitors whose id begins so match. */
  readonly idPrefix?: string | undefined;
  /** Maximum number of monitors on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** A monitor to delete. */
export interface DeleteMonitor {
  /** The namespace's name. */
  readonly namespace: string;
  /** The monitor's id, unique among its namespace's monitors. */
  readonly id: string;
  /** The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none. */
  readonly expectedVersion?: number | undefined;
}

/** A report of the monitor's job. */
export interface PingMonitor {
  /** The namespace's name. */
  readonly namespace: string;
  /** The monitor's id, unique among its namespace's monitors. */
  readonly id: string;
  /** start, success or fail. Default success. */
  readonly event?: PingEvent | undefined;
  /** The job's exit code; any but 0 is a failure. */
  readonly exitCode?: number | undefined;
  /** What to keep with the period, such as the end of a log: the last 10240 bytes, without secrets. */
  readonly body?: string | undefined;
}

/** The monitor whose periods are wanted. */
export interface MonitorHistory {
  /** The namespace's name. */
  readonly namespace: string;
  /** The monitor's id, unique among its namespace's monitors. */
  readonly id: string;
  /** Maximum number of periods on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** How many destinations are wanted. */
export interface ListDestinations {
  /** Maximum number of destinations. Default 100. */
  readonly limit?: number | undefined;
}

/** Names a destination. */
export interface DestinationName {
  /** An http or https URL, of which scheme, host and port count. */
  readonly destination: string;
}

/** Which dead rows to list. */
export interface ListInbox {
  /** The namespace's name. */
  readonly namespace?: string | undefined;
  /** Maximum number of rows on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** Which dead rows are meant: those with these ids, those of a namespace, or all. */
export interface ChangeInbox {
  /** The id of each, up to 1,000. */
  readonly ids?: readonly string[] | undefined;
  /** The namespace's name. */
  readonly namespace?: string | undefined;
  /** With `true` and no other field: all dead rows. */
  readonly all?: boolean | undefined;
}

/**
 * An API key to create. Without `namespaces` and `tenants` it has access to all of them, which only an unlimited
 * key can grant.
 */
export interface CreateKey {
  /** What the key allows; each role includes the previous ones. */
  readonly role: KeyRole;
  /** What the key is for. */
  readonly name?: string | undefined;
  /** Limits the key to these namespaces. */
  readonly namespaces?: readonly string[] | undefined;
  /** Limits the key to these tenants. */
  readonly tenants?: readonly string[] | undefined;
  /** When the key expires; without it, never. */
  readonly expiresAt?: InstantLike | undefined;
  /**
   * Limits the key to these operations: names such as `timers/create`, which are the paths below the version, for
   * service calls `calls/submit` and its like; groups such as `timers/*`; `read`, for all that a key of role read
   * may use.
   */
  readonly operations?: readonly string[] | undefined;
  /**
   * Limits the key to requests from these addresses and networks. The client's address counts, which behind a
   * proxy the setting `trusted_proxies` finds.
   */
  readonly sources?: readonly string[] | undefined;
}

/** The key to revoke. */
export interface RevokeKey {
  /** The key's id, the part between its first two underscores. */
  readonly keyId: string;
}

/** Filters of a list of audit entries; an entry must match all of them. */
export interface ListAudit {
  /** An action, or several: entries with any of them match. */
  readonly action?: readonly AuditAction[] | undefined;
  /** The key that acted. */
  readonly keyId?: string | undefined;
  /** The object of the action: a namespace's name or a key's id. */
  readonly subject?: string | undefined;
  /** Only entries at or after this instant. */
  readonly after?: InstantLike | undefined;
  /** Only entries before this instant. */
  readonly before?: InstantLike | undefined;
  /** Maximum number of entries on the page. Default 100. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

/** Which slots to return. */
export interface GetStatistics {
  /** A namespace, or `*` for all that the key has access to. Default `*`. */
  readonly namespace?: string | undefined;
  /** The first slot is the one with this instant. Default: one hour before `to`, with tenMinutes one day. */
  readonly from?: InstantLike | undefined;
  /** Only slots that begin before this instant. Default: now. */
  readonly to?: InstantLike | undefined;
  /** `minute` reaches back 24 hours, `tenMinutes` 30 days. Default `minute`. */
  readonly resolution?: StatisticsResolution | undefined;
}

/** A service call to submit. */
export interface SubmitServiceCall {
  /** A display name. */
  readonly name: string;
  readonly requestSpec: RequestSpec;
  /**
   * When to send the request: an RFC 3339 instant with a time zone. If it is in the past, or neither `dueAt` nor
   * `delay` is given: now.
   */
  readonly dueAt?: InstantLike | undefined;
  /** Delay from now, instead of `dueAt`. */
  readonly delay?: DurationLike | undefined;
  /** Labels to filter lists by. */
  readonly tags?: readonly string[] | undefined;
  /** The call's id, a UUID of version 7. Without one, the server generates it. */
  readonly serviceCallId?: string | undefined;
  /** Makes the submission safe to repeat. Equivalent to the header Idempotency-Key. */
  readonly idempotencyKey?: string | undefined;
  /**
   * The flow that limits how many of its attempts begin and are in flight at once, together with timers, if a rule
   * of the agent's namespace (`agent.flow_namespace`) matches it.
   */
  readonly flowKey?: string | undefined;
  /** Who is notified when it has failed. */
  readonly onFailure?: CallHook | undefined;
  /** Who is notified when it has succeeded. */
  readonly onSuccess?: CallHook | undefined;
}

/** The HTTP request to make. */
export interface RequestSpec {
  /** The method of the request. */
  readonly method: ServiceCallMethod;
  /** The http or https URL. */
  readonly url: string;
  /** The request's headers. */
  readonly headers?: Readonly<Record<string, string>> | null | undefined;
  /**
   * Any JSON: a string is sent as plain text, any other value as JSON. At most 102400 bytes. Not with GET and
   * HEAD.
   */
  readonly body?: unknown;
  /**
   * When a failed attempt is retried. Without a policy, or with null, there is a single attempt: a service may not
   * tolerate repeated requests. Omitted members get their defaults when the call is submitted.
   */
  readonly retryPolicy?: RetryPolicy | null | undefined;
  /**
   * The credential that the request has: one of the namespace that `agent.credentials_namespace` names, in which
   * the client's key has to have the role write. It goes to no other origin than the credential's own.
   */
  readonly credential?: string | undefined;
}

/** Where a notification of a service call is sent, signed like a callback. */
export interface CallHook {
  /** The http or https URL, or `nats://subject`, to notify. */
  readonly url: string;
  /** Additional headers of the notification. The value [redacted] keeps the stored value. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The credential that the notification has: of the namespace; for service calls, of that which
   * `agent.credentials_namespace` names.
   */
  readonly credential?: string | undefined;
}

/** The rotation of the secret that signs a tenant's service calls. */
export interface RotateTenantSecret {
  /** The tenant: a UUID of version 7. */
  readonly tenantId: string;
  /** The new secret: whsec_ and base64. Without one, the server generates it. */
  readonly secret?: string | undefined;
  /** How long the previous secret keeps signing: at most 30d; 0s: not at all. Default 24h. */
  readonly grace?: DurationLike | undefined;
  /** Rotate even during the grace period of an earlier rotation. Default false. */
  readonly force?: boolean | undefined;
}

/** A timer, pending or finished. */
export interface Timer {
  /** The namespace's name. */
  namespace: string;
  /** The timer's id, unique in its namespace. */
  id: string;
  /** Derived from namespace and id. */
  timerUuid: string;
  /** The shard that holds the timer. */
  shardId: number;
  status: Open<TimerStatus>;
  /** An RFC 3339 instant with a time zone. */
  executeAt: Instant;
  /** The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets. */
  callbackUrl: string;
  /** The HTTP method of the callback. */
  method: Open<CallbackMethod>;
  /** Additional headers of the callback; secret values are [redacted]. */
  headers: Record<string, string>;
  /** Timeout of one attempt, in seconds. */
  callbackTimeoutSeconds: number;
  /** Labels to filter lists by. */
  tags: string[];
  /** Attempts made in the current firing. */
  attempts: number;
  /** The latest attempts, oldest first. */
  attemptLog: Attempt[];
  /** An RFC 3339 instant with a time zone. */
  createdAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  updatedAt: Instant;
  /** Absent if the timer has a body. */
  payload?: unknown;
  /** The timer's own policy; absent while the namespace's applies. */
  retryPolicy?: RetryPolicyAnswer;
  /** When the next attempt is due. */
  nextAttemptAt?: Instant;
  /** When the timer finished. */
  executedAt?: Instant;
  /** Why the last failed attempt failed: a stable code, then details. */
  lastError?: string;
  /** The whole body of the callback, instead of the envelope with the payload. */
  body?: RawBodyAnswer;
  /**
   * No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired
   * then, any other as failed.
   */
  expireAfter?: string;
  /** What the timer is for. */
  description?: string;
  /** The flow that limits its attempts. */
  flowKey?: string;
  /** The credential that its requests have. */
  credential?: string;
  /**
   * Why the pending timer is suspended: `egress` (this server does not call its address), `secret` (one can't be
   * decrypted), `namespace:…`, `destination:…`, `flow:…` (paused, or too many wait), `credential:…` (it can't be
   * sent now), `bad_record: …`; else absent.
   */
  suspended?: string;
  /** What the due timer does now, or waits for; only in a list that asks for it. */
  explanation?: Explanation;
  /** Who is notified when it has failed, or expired. */
  onFailure?: HookAnswer;
  /** Who is notified when it has succeeded. */
  onSuccess?: HookAnswer;
  /**
   * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its
   * replay.
   */
  onRecovery?: HookAnswer;
  /** Only of a timer that was created with onConflict debounce. */
  debounced?: Debounced;
}

/** One attempt. `status` is absent if there was no response, `error` if the attempt succeeded. */
export interface Attempt {
  /** When the attempt started. */
  startedAt: Instant;
  /** Duration in milliseconds. */
  durationMs: number;
  /** The HTTP status. */
  status?: number;
  /** Why the attempt failed: a stable code, then details. */
  error?: string;
  /**
   * The beginning of the response's body on one line, without secrets; its length if it is no text. Absent if the
   * receiver just accepted the callback.
   */
  answer?: string;
  /** The `webhook-id` of its batch; absent if it had a request of its own. */
  batch?: string;
}

/** A retry policy with its defaults filled in. */
export interface RetryPolicyAnswer {
  /** Maximum number of attempts, including the first. */
  maxAttempts: number;
  /** Delay before the second attempt. */
  initialInterval: string;
  /** Factor by which each delay grows. */
  backoffMultiplier: number;
  /** Maximum delay. */
  maxInterval: string;
  /** No attempt starts later than this after the first. */
  maxAttemptsDuration?: string;
}

/** A callback's raw body, in one of the three forms. */
export interface RawBodyAnswer {
  contentType: string;
  json?: unknown;
  text?: string;
  base64?: string;
}

/** Where a timer is, what it waits for, and what happens next. */
export interface Explanation {
  state: Open<TimerState>;
  /** The shard that holds the timer. */
  shard: number;
  /** The node that owns the shard; null if none does. */
  owner: string | null;
  /** All of this in English. */
  sentence: string;
  /** What has to happen before the timer moves on; absent if it has finished, or that is not known. */
  waitsFor?: Open<TimerWaitsFor>;
  /** When the next attempt is due, or the one in flight times out; absent if that is not known. */
  next?: string;
  /** The number of the attempt that is in flight; absent if none is. */
  attempt?: number;
  /**
   * When the attempt in flight began, or else when the timer became due; in the state `unknown`, since when the
   * owner has not answered. Absent if the timer is not due, or that is not known.
   */
  since?: string;
}

/** Where notifications are sent. */
export interface HookAnswer {
  /** The URL; its secrets are [redacted]. */
  url: string;
  /** Additional headers; secret values are [redacted]. */
  headers?: Record<string, string>;
  /** The credential that the notification has. */
  credential?: string;
}

/** The debounced creates for which one firing of a timer stands. */
export interface Debounced {
  /** How many they are. */
  creates: number;
  /** When the first one was made. */
  firstAt: Instant;
  /** The timer fires at the latest then. */
  latestAt: string;
  /** How many payloads the payload's array has; absent if it has that of the latest create. */
  collected?: number;
}

/** A page of runs, newest first. A page without `nextCursor` is the last. */
export interface RunPageAnswer {
  runs: RunAnswer[];
  /** `nextCursor` of the previous page. */
  nextCursor?: string;
}

/**
 * One run: what became of one instant of the timer. `pending` is the current run. After `rescheduled` and
 * `superseded` the timer went on, because its receiver asked for another instant, or a client gave it one or
 * created it again.
 */
export interface RunAnswer {
  /** The run's name, which is part of the webhook-id of its attempts. */
  run: string;
  /** An RFC 3339 instant with a time zone. */
  executeAt: Instant;
  status: Open<RunStatus>;
  /** Number of attempts made, of which the latest are kept. */
  attempts: number;
  /** The latest attempts, oldest first. */
  attemptLog: Attempt[];
  /** `true`: it is a replay of the run before it with the same name. Absent otherwise. */
  replay?: boolean;
}

/** One result for each timer sent, in the same order. */
export interface BatchResults {
  results: BatchResult[];
}

/**
 * The result for one timer of a batch: `timer` or `error`. With `existing` or `replayed` nothing was written:
 * the timer is the existing one that was kept, or the one that an earlier request with the same idempotency key
 * created.
 */
export interface BatchResult {
  timer?: Timer;
  error?: ItemError;
  existing?: boolean;
  replayed?: boolean;
}

/** Why a timer of a batch was not created, or not replayed. */
export interface ItemError {
  /** A stable code. */
  error: string;
  message: string;
  /** The HTTP status that a request for this timer alone would have returned. */
  status: number;
  errors: BadField[];
}

/** An invalid field: its path, and what is wrong with it. */
export interface BadField {
  /** Dotted path, such as timers[3].executeAt; empty for the body as a whole. */
  path: string;
  /** What is wrong, and what is accepted. */
  reason: string;
}

/**
 * A page of timers, ordered by `executeAt`. A page without `nextCursor` is the last. A page may be empty without
 * being the last, and is shorter than its limit if payloads are large.
 */
export interface TimerPage {
  timers: Timer[];
  /** `nextCursor` of the previous page. */
  nextCursor?: string;
}

/** A schedule: its definition, and where it stands. */
export interface Schedule {
  /** The namespace's name. */
  namespace: string;
  /** The schedule's id, unique among its namespace's schedules. */
  id: string;
  /** Derived from namespace and id. */
  scheduleUuid: string;
  /** The shard that holds the schedule. */
  shardId: number;
  /** active, paused, or ended: it has no more instants, or was deleted. */
  status: Open<ScheduleStatus>;
  /** When it runs, in words. */
  sentence: string;
  /** Its next three instants. */
  nextInstants: Instant[];
  /** Its ended occurrences by outcome. */
  counts: Record<string, number>;
  /**
   * Instants that did not fire, by reason: late (they passed before it could fire), overlap (the previous
   * occurrence had not finished), window (older than the catch-up window), paused, excluded (by a calendar, or
   * skipped by hand).
   */
  missed: Record<string, number>;
  /** Triggers that wait to be fired. */
  triggersWaiting: number;
  /** Backfills that are not complete. */
  backfillsWaiting: number;
  /** Failed occurrences that wait to be replayed. */
  replaysWaiting: number;
  /** What becomes of instants that pass while it cannot fire. */
  catchUp: Open<CatchUp>;
  /** By how much each instant is delayed at most. */
  jitter: string;
  /** Failed occurrences in a row that pause it; 0: never. */
  pauseAfterFailures: number;
  /** Calendars: only instants on a date of one of them fire. Empty: no restriction. */
  only: string[];
  /** Calendars: no instant on a date of any of them fires. */
  skip: string[];
  /** What becomes of instants that its calendars exclude. */
  onSkipped: Open<OnSkipped>;
  /** Instants to come that are skipped by hand. */
  skippedInstants: string[];
  /** The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets. */
  callbackUrl: string;
  /** The HTTP method of the callback. */
  method: Open<CallbackMethod>;
  /** Additional headers of the callback; secret values are [redacted]. */
  headers: Record<string, string>;
  /** Timeout of one attempt, in seconds. */
  callbackTimeoutSeconds: number;
  /** Labels to filter lists by. */
  tags: string[];
  /** An RFC 3339 instant with a time zone. */
  createdAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  updatedAt: Instant;
  /** 1, and one more with each change by a client. */
  version: number;
  /**
   * A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds
   * first, or @hourly, @daily, @weekly, @monthly, @yearly.
   */
  cron?: string;
  /** The time zone of cron. */
  timeZone?: string;
  /** An interval of 1s to 366d, by elapsed time, instead of cron. */
  every?: string;
  /** From which instant every counts. */
  anchor?: Instant;
  /** No instant is earlier than this. */
  startAt?: Instant;
  /** All instants are earlier than this. */
  endAt?: Instant;
  /** How many instants it has. */
  maxOccurrences?: number;
  /** Instants that are later than this are missed; absent while the default applies. */
  catchUpWindow?: string;
  /**
   * No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired
   * then, any other as failed.
   */
  expireAfter?: string;
  /** What the schedule is for. */
  description?: string;
  /** The flow that limits its attempts. */
  flowKey?: string;
  /** The credential that its requests have. */
  credential?: string;
  /** Absent if the schedule has a body. */
  payload?: unknown;
  /** The whole body of the callback, instead of the envelope with the payload. */
  body?: RawBodyAnswer;
  /** The schedule's own policy; absent while the namespace's applies. */
  retryPolicy?: RetryPolicyAnswer;
  /** Why it is paused; absent unless it is. */
  pausedReason?: string;
  /** The instant of the current occurrence, waiting or being attempted; absent once ended. */
  occurrenceAt?: Instant;
  /** Attempts of the current occurrence. */
  attempts?: number;
  /** When the next attempt is due. */
  nextAttemptAt?: Instant;
  /** Why the last failed attempt failed: a stable code, then details. */
  lastError?: string;
  /** The occurrence that ended last. */
  lastOccurrence?: Occurrence;
  /**
   * Why the current occurrence is suspended although the schedule is active: as in a timer's `suspended`; absent
   * unless it is.
   */
  suspended?: string;
  /** Who is notified when it has failed, or expired. */
  onFailure?: HookAnswer;
  /** Who is notified when it has succeeded. */
  onSuccess?: HookAnswer;
  /**
   * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its
   * replay.
   */
  onRecovery?: HookAnswer;
  /** Who is notified when instants did not fire, though the schedule was not paused. */
  onMissed?: HookAnswer;
  /** Who is notified when the schedule has paused itself after failures in a row. */
  onPaused?: HookAnswer;
  /** The declaration that it comes from, such as the name of a repository. */
  managedBy?: string;
}

/** An occurrence that has ended. */
export interface Occurrence {
  /** Its instant. */
  instant: Instant;
  /** Why it fired: its instant had come (regular), a trigger, a backfill, or a replay. */
  source: Open<OccurrenceSource>;
  /** How it ended: completed, failed or expired. */
  outcome: string;
  /** An RFC 3339 instant with a time zone. */
  finishedAt: Instant;
  /** Its attempts. */
  attempts: number;
}

/** A page of schedules, ordered by id. A page without `nextCursor` is the last. */
export interface SchedulePage {
  schedules: Schedule[];
  /** `nextCursor` of the previous page. */
  nextCursor?: string;
}

/** The next instants, fewer than asked for if there are no more. */
export interface Preview {
  /** The next instants, in UTC. Those of a schedule include its jitter. */
  instants: Instant[];
  /** When it runs, in words. */
  sentence: string;
  /**
   * The instants until the last of these that don't fire, and why; with onSkipped next those that move. At most
   * 100.
   */
  excluded: ExcludedInstant[];
}

/** An instant that does not fire. */
export interface ExcludedInstant {
  /** The instant; one that a calendar excludes is without jitter. */
  instant: Instant;
  /** only, skip, once or missing. */
  reason: Open<ExclusionReason>;
  /** The calendar, or those of only. */
  calendar?: string;
}

/** A page of occurrences, newest first. A page without `nextCursor` is the last. */
export interface OccurrencePage {
  occurrences: OccurrenceRun[];
  /** `nextCursor` of the previous page. */
  nextCursor?: string;
}

/**
 * One occurrence with its attempts. `pending` is the current one. `missed`: instants that did not fire, with no
 * occurrence before them.
 */
export interface OccurrenceRun {
  /** Its name, which is part of the webhook-id of its attempts. */
  run: string;
  /** An RFC 3339 instant with a time zone. */
  instant: Instant;
  status: Open<RunStatus>;
  /** Number of attempts made, of which the latest are kept. */
  attempts: number;
  /** The latest attempts, oldest first. */
  attemptLog: Attempt[];
  /** Instants between this occurrence and the next that did not fire; excluded ones are before it. */
  missed: MissedRange[];
  /** Why it fired: regular, trigger, backfill or replay; absent if it did not. */
  source?: Open<OccurrenceSource>;
}

/** Instants that did not fire, from the first to the last. */
export interface MissedRange {
  /** late, overlap, window, paused or excluded. */
  reason: string;
  /** How many; 1,000 stands for more, too. */
  count: number;
  /** An RFC 3339 instant with a time zone. */
  firstAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  lastAt: Instant;
}

/** Groups of failures, those with most failures first. */
export interface FailureList {
  /** The groups. */
  groups: FailureGroup[];
  /** How many groups beyond the limit there are. */
  furtherGroups: number;
  /** How many failures there are in all groups. */
  count: number;
  /** Whether there are older failures that were not counted: at most 50,000 are. */
  atLeast: boolean;
}

/** Failures with something in common. Fields in which they differ are absent. */
export interface FailureGroup {
  /** How many failures were counted. */
  count: number;
  /** When the first one failed. */
  firstAt: Instant;
  /** When the last one failed. */
  lastAt: Instant;
  /** How many failed in each of 24 equal parts of the time from the first one to now. */
  series: number[];
  /** The newest ones, at most 10. */
  newest: Failure[];
  /** The namespace; absent of service calls. */
  namespace?: string;
  /** The tenant; of service calls only. */
  tenant?: string;
  /** The URL that was called, without credentials and query. */
  destination?: string;
  /** The stable code of the last error, without details. */
  error?: string;
  /** What failed. */
  kind?: Open<FailedKind>;
  /** The newest failure in detail. */
  sample?: FailureSample;
}

/**
 * A failed end that nobody has dealt with. Its details are in the history of the timer or schedule, or in the
 * execution log of the service call.
 */
export interface Failure {
  /** Names the failure in requests. Opaque. */
  failureId: string;
  /** What failed. */
  kind: Open<FailedKind>;
  /** The id of the timer, schedule or service call. */
  id: string;
  /** The instant of the run that failed. */
  executeAt: Instant;
  /** When it failed. */
  failedAt: string;
  /** The URL that was called, without credentials and query. */
  destination: string;
  /** The stable code of the last error, without details. */
  error: string;
  /** The namespace; absent of service calls. */
  namespace?: string;
  /** The tenant; of service calls only. */
  tenant?: string;
  /** The display name of the service call. */
  name?: string;
}

/** The newest failure of a group: its request and its last attempt, as far as they are kept. */
export interface FailureSample {
  /** The request's method. */
  method?: string;
  /** The request's URL, without its secrets. */
  url?: string;
  /** The last attempt. */
  attempt?: Attempt;
}

/** A page of failures, newest first. */
export interface FailurePage {
  /** The failures. */
  failures: Failure[];
  /** The cursor of the next page; absent on the last page. */
  nextCursor?: string;
}

/** What was dismissed. */
export interface DismissedFailures {
  /** How many failures. Ids that were not listed any more count, too. */
  dismissed: number;
  /**
   * Whether there may be more of the group: at most 50,000 are read, and of service calls 5,000 dismissed. Repeat
   * the request.
   */
  more: boolean;
}

/** A job. */
export interface JobAnswer {
  job: Job;
}

/** A job of a namespace or of a tenant, and how far it is. */
export interface Job {
  /** The job's id. */
  id: string;
  /**
   * What is done with each row: cancel, shift and setUrl of timers; pause, resume, delete and setUrl of schedules;
   * replay of failures; delete of service calls.
   */
  action: Open<JobAction>;
  /** What it changes. A namespace is deleted with all that is in it. */
  of: Open<JobKind>;
  filter: JobFilterAnswer;
  /** running and paused ones go on, or may; completed, canceled and failed ones have ended. */
  state: Open<JobState>;
  /** Rows a second that the job changes at most, in the whole cluster. Default 500. */
  ratePerSecond: number;
  /** Only counts the rows that match. Default false. */
  dryRun: boolean;
  /** Rows examined that match. */
  matched: number;
  /** Rows changed. */
  changed: number;
  /** Rows that had ended or changed meanwhile, or were as wanted already. */
  skipped: number;
  /** Rows that could not be changed. */
  errors: number;
  /** The first ten of them. */
  sampleErrors: JobFailure[];
  /** An RFC 3339 instant with a time zone. */
  createdAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  updatedAt: Instant;
  /** The namespace's name; `*`: all that the API key has access to. */
  namespace?: string;
  /** The tenant whose service calls are meant, instead of a namespace; `*`: all that the API key has access to. */
  tenant?: string;
  /** By how much shift moves the instants: a duration, with - to an earlier one. */
  shiftBy?: string;
  /** The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets. */
  url?: string;
  /** The job fails instead of changing more rows, for example than a dry run has counted. */
  matchMax?: number;
  /** Timers due before this instant have been examined. */
  examinedTo?: string;
  /** Whether the namespace is deleted although timers or schedules are pending in it. */
  cancelPending?: boolean;
  /** Why it failed. */
  reason?: string;
  /** The id of the key that created it. */
  createdBy?: string;
  /** An RFC 3339 instant with a time zone. */
  endedAt?: string;
}

/** The filter of a job, with all instants resolved. */
export interface JobFilterAnswer {
  /** An RFC 3339 instant with a time zone. */
  createdBefore: string;
  /** A row must have all of these tags. Not of failures, but of service calls. */
  tags?: string[];
  /** Prefix of the ids. */
  idPrefix?: string;
  /** A part of the URL's host and path; case does not matter. Of failures: the destination of a group. */
  destination?: string;
  /**
   * A part of the last error; case does not matter. Of failures: the error of a group. Of timers and failures
   * only.
   */
  error?: string;
  /** Only timers and service calls due at or after this instant, or failures of such runs. */
  executeAfter?: string;
  /** Only timers and service calls due before this instant, or failures of such runs. */
  executeBefore?: string;
  /** Only failures of this kind. Of failures only. */
  kind?: Open<FailedKind>;
  /** Only rows created at or after this instant: failed then, or submitted if it is a service call. */
  createdAfter?: string;
  /** A part of the name, with letters A to Z in either case. Of service calls only. */
  name?: string;
  /** Only calls that wait for this. Of service calls only. */
  status?: Open<WaitingStatus>;
}

/** A row that could not be changed, and why. It has a namespace or a tenant. */
export interface JobFailure {
  id: string;
  error: string;
  namespace?: string;
  tenant?: string;
}

/** Jobs, newest first: those that have not ended, and the newest 200 of those that ended in the last 30 days. */
export interface JobList {
  jobs: Job[];
}

/** A namespace and its settings. The secret is never shown. */
export interface Namespace {
  /** The namespace's name. */
  name: string;
  /** The number of shards that its timers are spread over. Cannot be changed later. */
  numShards: number;
  /** Which finished timers stay visible. */
  history: Open<HistoryMode>;
  /** How long finished timers stay visible. */
  retention: string;
  paused: boolean;
  /** Whether it has a signing secret. */
  signed: boolean;
  /**
   * What a 2xx response to a callback means. standard: success, unless its body is a JSON object with ok: false or
   * nextExecuteAt. strict: success only with an empty body or ok: true.
   */
  answers: Open<CallbackAnswers>;
  /** The policy of timers without their own: the namespace's, or the default. */
  retryPolicy: RetryPolicyAnswer;
  /** An RFC 3339 instant with a time zone. */
  createdAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  updatedAt: Instant;
  /** 1, and one more with each change. */
  version: number;
  /** Until when the previous secret keeps signing; absent if none does. */
  previousSecretUntil?: Instant;
  /**
   * Why the stored record can't be read; absent if it can. The fields besides name are then placeholders. Timers
   * of the namespace wait, and its operations are refused, until the record is restored from a backup.
   */
  damaged?: string;
  /** The job's id. */
  deleting?: string;
  /** The limits of all attempts of the namespace together. */
  limits?: FlowLimitsAnswer;
  /** Its quotas; absent if it has none. */
  quotas?: QuotasAnswer;
  /**
   * Due timers with the same URL, method, headers and timeout are sent in one request, which the receiver answers
   * timer by timer.
   */
  callbackBatch?: CallbackBatchAnswer;
  /**
   * Where what becomes of its timers, schedules and monitors is published: below this subject of NATS, such as
   * `shop.events.timer.failed`, with JetStream’s acknowledgement. The setting `nats_targets` has to list the
   * subject for the namespace. Events without a sink are not kept.
   */
  eventSink?: string;
  /** Who is notified when it has failed, or expired. */
  onFailure?: HookAnswer;
  /** Who is notified when it has succeeded. */
  onSuccess?: HookAnswer;
  /**
   * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its
   * replay.
   */
  onRecovery?: HookAnswer;
  /** Who is notified when instants did not fire, though the schedule was not paused. */
  onMissed?: HookAnswer;
  /** Who is notified when the schedule has paused itself after failures in a row. */
  onPaused?: HookAnswer;
  /** Who is notified when it is late, and when its job reports a failure, or an occurrence fails. */
  onLate?: HookAnswer;
  /** The declaration that it comes from, such as the name of a repository. */
  managedBy?: string;
}

/** Limits of attempts. What is absent is not limited. */
export interface FlowLimitsAnswer {
  rate?: FlowRateAnswer;
  /** How many attempts may begin at once; absent without a rate. */
  burst?: number;
  /** How many attempts may be in flight at once. */
  parallelism?: number;
  /** True where the timers of each key begin one at a time, in the order of their instants; else absent. */
  ordered?: boolean;
}

/** So many attempts within a time, evenly spread. */
export interface FlowRateAnswer {
  /** How many attempts may begin in that time. */
  count: number;
  /** The time: 1s to 1d. */
  per: string;
}

/** The quotas of a namespace; absent ones do not exist. */
export interface QuotasAnswer {
  /** Its timers that may be pending at once; not schedules. */
  pending?: number;
  /** Timers and schedules created in it, and monitors put, in a second, at most; with one second's worth at once. */
  createsPerSecond?: number;
  /** Bytes that the payload or the raw body of one timer or schedule may have. */
  payloadBytes?: number;
}

/** How due timers of one receiver are sent together. */
export interface CallbackBatchAnswer {
  /** How many timers one request has at most. */
  max: number;
  /** How long the first due timer of a request waits for others: 0s to 5s. Default 100ms. */
  linger: string;
}

/** All namespaces that the key has access to, sorted by name. */
export interface NamespaceList {
  namespaces: Namespace[];
}

/** The new signing secret. Only this response shows it. */
export interface RotatedSecret {
  /** The namespace's name. */
  name: string;
  /** The new secret, for the receivers. */
  secret: string;
  /** Until when the previous secret keeps signing; absent if only the new one signs. */
  previousUntil?: Instant;
}

/** A rule, and what is under way of its flow keys. */
export interface Flow {
  /** The namespace's name. */
  namespace: string;
  /** The flow key that the rule is for, or a prefix of keys, which ends with a colon. */
  match: string;
  /** Whether an answer 429 or 503 with Retry-After lets nothing more of its flow key begin until then. */
  closeOnRetryAfter: boolean;
  /** Whether nothing of it begins. */
  paused: boolean;
  /** 1, and one more with each change. */
  version: number;
  /** An RFC 3339 instant with a time zone. */
  createdAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  updatedAt: Instant;
  /** Attempts that are in flight. */
  inFlight: number;
  /** Due timers that wait in memory, and service calls; further timers may wait in the store. */
  waiting: number;
  /** Whether all nodes have answered; otherwise more may be in flight and wait than is shown. */
  complete: boolean;
  /** The limits of each flow key by itself. */
  perKey?: FlowLimitsAnswer;
  /** The limits of all flow keys of the rule together. */
  total?: FlowLimitsAnswer;
  /**
   * Due timers with the same URL, method, headers and timeout are sent in one request, which the receiver answers
   * timer by timer.
   */
  callbackBatch?: CallbackBatchAnswer;
  /** When it goes on; absent unless it is paused until an instant. */
  pausedUntil?: string;
  /** The declaration that it comes from, such as the name of a repository. */
  managedBy?: string;
}

/** A page of rules, by match. A page without `nextCursor` is the last. */
export interface FlowPage {
  flows: Flow[];
  /** `nextCursor` of the previous page. */
  nextCursor?: string;
}

/** A calendar: its dates are those of `dates`, `ranges` and `weekdays` together. */
export interface Calendar {
  /** The namespace's name. */
  namespace: string;
  /** The calendar's name, unique in its namespace. */
  name: string;
  /** The IANA time zone in which its dates begin and end. Default UTC. */
  timeZone: string;
  /** Single dates, as 2027-12-25. */
  dates: string[];
  /** Ranges of dates, both ends included. */
  ranges: DateRangeAnswer[];
  /** Weekdays, of every week. */
  weekdays: string[];
  /** 1, and one more with each change. */
  version: number;
  /** An RFC 3339 instant with a time zone. */
  createdAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  updatedAt: Instant;
  /** What it is for, in one line; shown in lists. */
  description?: string;
  /** The declaration that it comes from, such as the name of a repository. */
  managedBy?: string;
}

/** Dates from the first to the last. */
export interface DateRangeAnswer {
  /** The first date. */
  first: string;
  /** The last date. */
  last: string;
}

/** A page of calendars, by name. A page without `nextCursor` is the last. */
export interface CalendarPage {
  calendars: CalendarSummary[];
  /** `nextCursor` of the previous page. */
  nextCursor?: string;
}

/** A calendar without its dates. */
export interface CalendarSummary {
  /** The namespace's name. */
  namespace: string;
  /** The calendar's name, unique in its namespace. */
  name: string;
  /** The IANA time zone in which its dates begin and end. Default UTC. */
  timeZone: string;
  /** How many single dates it has. */
  dateCount: number;
  /** How many ranges it has. */
  rangeCount: number;
  /** Weekdays, of every week. */
  weekdays: string[];
  /** 1, and one more with each change. */
  version: number;
  /** An RFC 3339 instant with a time zone. */
  createdAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  updatedAt: Instant;
  /** The first of its dates and ranges; absent if it has none. */
  firstDate?: string;
  /** The last of them: a calendar that ends soon has to be put again. */
  lastDate?: string;
  /** What it is for, in one line; shown in lists. */
  description?: string;
  /** The declaration that it comes from, such as the name of a repository. */
  managedBy?: string;
}

/** A credential without its secret. */
export interface Credential {
  /** The namespace's name. */
  namespace: string;
  /** The credential's name, unique in its namespace. */
  name: string;
  /** How a request identifies itself. */
  type: Open<CredentialType>;
  /**
   * Where it may be sent, and nowhere else: `host` or `host:port` for HTTPS, `http://host:port` for plain HTTP.
   * Without any, only this machine's own addresses.
   */
  hosts: string[];
  /** 1, and one more with each change. */
  version: number;
  /** An RFC 3339 instant with a time zone. */
  createdAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  updatedAt: Instant;
  /** Of basic: the user's name. */
  username?: string;
  /** Of oauth2ClientCredentials: the token endpoint. */
  tokenUrl?: string;
  /** Of oauth2ClientCredentials: the client's id. */
  clientId?: string;
  /**
   * Of oauth2ClientCredentials: whether the token endpoint gets the client's secret in the header Authorization
   * (`basic`, the default) or in the body (`post`).
   */
  clientAuthentication?: Open<ClientAuth>;
  /** Of oauth2ClientCredentials: the scopes to ask for, with spaces between. */
  scope?: string;
  /** Of jwt: its `aud`. Of oauth2ClientCredentials: the parameter `audience`. */
  audience?: string;
  /** Of jwt: how long each is valid, 1m to 1h. Default 10m. */
  lifetime?: string;
  /** Of mtls: the client's certificate in PEM, followed by those that lead to its authority. */
  certificate?: string;
  /**
   * Certificates in PEM of the authorities that are trusted for its hosts, instead of those that the system
   * trusts.
   */
  ca?: string;
  /** What it is for, in one line; shown in lists. */
  description?: string;
  /** The declaration that it comes from, such as the name of a repository. */
  managedBy?: string;
}

/** A page of credentials, by name. A page without `nextCursor` is the last. */
export interface CredentialPage {
  credentials: Credential[];
  /** `nextCursor` of the previous page. */
  nextCursor?: string;
}

/** What became of the test of a credential. */
export interface TestedCredential {
  /** Whether all steps succeeded. */
  ok: boolean;
  /** What was tried, up to the first step without which there is no other. */
  steps: TestStep[];
}

/** A step of a test. */
export interface TestStep {
  /** What was tried: secret, token, connection or request. */
  what: string;
  /** Where, or of which credential. */
  target: string;
  /** Whether it succeeded. */
  ok: boolean;
  /** What happened. */
  detail: string;
}

/** A JWK set (RFC 7517). */
export interface SigningKeySet {
  keys: SigningKey[];
}

/** A public key (RFC 7517). */
export interface SigningKey {
  /** The kind of key. */
  kty: string;
  /** The curve. */
  crv: string;
  /** The public point's x. */
  x: string;
  /** The public point's y. */
  y: string;
  /** The key's id, which is in the header of each JWT. */
  kid: string;
  /** What it is for: signatures. */
  use: string;
  /** The algorithm. */
  alg: string;
}

/** What receivers need to know of the issuer (OpenID Connect Discovery 1.0). Nobody signs in here. */
export interface OpenIdConfiguration {
  /** The `iss` of each JWT: the setting `public_url`. */
  issuer: string;
  /** Where its keys are. */
  jwks_uri: string;
  response_types_supported: string[];
  subject_types_supported: string[];
  id_token_signing_alg_values_supported: string[];
}

/** The monitor; with `pingUrl` if it was created and takes pings. */
export interface MonitorPut {
  monitor: Monitor;
  /** Whether there was none of this id. */
  created: boolean;
  /** The URL that its job pings, which nobody is shown again. */
  pingUrl?: string;
}

/** A monitor. `expectedAt` and `deadline` are those of its open period; absent while nothing is expected. */
export interface Monitor {
  /** The namespace's name. */
  namespace: string;
  /** The monitor's id, unique among its namespace's monitors. */
  id: string;
  /** How long after the expected instant a report may come, or an occurrence end. Default 5m; 1s to 31d. */
  grace: string;
  /** Labels to filter lists by. */
  tags: string[];
  /** new (no report yet, or no occurrence that has ended), up, late, failed or paused. */
  state: Open<MonitorState>;
  /** Since when it has this state. */
  since: string;
  /** Whether its job has started and not ended. */
  running: boolean;
  /** 1, and one more with each change. */
  version: number;
  /** An RFC 3339 instant with a time zone. */
  createdAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  updatedAt: Instant;
  /**
   * A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds
   * first, or @hourly, @daily, @weekly, @monthly, @yearly.
   */
  cron?: string;
  /** The IANA time zone of cron. Default UTC. */
  timeZone?: string;
  /** A report is expected so long after the last one; 1s to 366d, instead of cron. */
  every?: string;
  /**
   * The id of a schedule of the namespace that it watches, instead of cron or every: it needs no ping, and is late
   * when an occurrence has not ended grace after its instant. It expects nothing while the schedule is paused, or
   * after its end.
   */
  schedule?: string;
  /** While it is late, notify again so often; at least 1m. Default: once. */
  repeat?: string;
  /** Who is notified when it is late, and when its job reports a failure, or an occurrence fails. */
  onLate?: HookAnswer;
  /** Who is notified when its job succeeds after it was late or had failed. */
  onRecovery?: HookAnswer;
  /** What it is for, in one line; shown in lists and never sent to the callback. */
  description?: string | null;
  /** The declaration that it comes from, such as the name of a repository. */
  managedBy?: string;
  /** An RFC 3339 instant with a time zone. */
  lastPingAt?: string;
  /** An RFC 3339 instant with a time zone. */
  expectedAt?: string;
  /** An RFC 3339 instant with a time zone. */
  deadline?: string;
  /** An RFC 3339 instant with a time zone. */
  unwatchedSince?: string;
}

/** The monitor. */
export interface MonitorAnswer {
  monitor: Monitor;
}

/** A page of monitors, by namespace and id. A page without `nextCursor` is the last. */
export interface MonitorPage {
  monitors: Monitor[];
  /** `nextCursor` of the previous page. */
  nextCursor?: string;
}

/** The monitor with its new URL. */
export interface MonitorRotated {
  monitor: Monitor;
  /** The URL that its job pings, which nobody is shown again. */
  pingUrl: string;
}

/** A page of periods, newest first. A page without `nextCursor` is the last. */
export interface MonitorPeriods {
  periods: MonitorPeriod[];
  /** `nextCursor` of the previous page. */
  nextCursor?: string;
}

/** A period, or several in a row that nobody has reported. */
export interface MonitorPeriod {
  /** When its report was expected. */
  expectedAt: string;
  /** Until when a report was in time. */
  deadline: string;
  /**
   * onTime; late (after the deadline); missed (none came); failed; excused (it may have come while Tocsin could
   * not take it, and nobody was notified).
   */
  state: Open<PeriodState>;
  /** How many periods, from expectedAt on. Absent: one. */
  periods?: number;
  /** An RFC 3339 instant with a time zone. */
  startedAt?: Instant;
  /** An RFC 3339 instant with a time zone. */
  endedAt?: string;
  /** How long the job took. */
  durationMs?: number;
  /** The exit code that it reported. */
  exitCode?: number;
  /** What it sent, without secrets. */
  body?: string;
  /** Why it is excused, was missed, or has failed. */
  note?: string;
}

/** Destinations, those that need attention first. */
export interface DestinationList {
  destinations: Destination[];
  /** How many more there are, at least; raise limit. */
  further: number;
}

/** A scheme, host and port to which timers are sent; the numbers are those of all nodes together. */
export interface Destination {
  /** Scheme, host and port. */
  destination: string;
  /** Whether no attempt begins until it is resumed. */
  paused: boolean;
  /** Attempts that are in flight. */
  inFlight: number;
  /** How many attempts may be in flight at once; it shrinks while the destination does not answer. */
  limit: number;
  /** Due timers that wait in memory; further ones may wait in the store. */
  waiting: number;
  /** Attempts that have ended within the last 30 seconds. */
  attempts: number;
  /** Those of them without a response, or with a status of 500 and above. */
  failures: number;
  /**
   * `open`: nearly all attempts failed, and none begins before the next probe; `half_open`: probes begin, one at a
   * time; `closed`: attempts begin as usual. That of the node where it is the worst.
   */
  breaker: Open<BreakerState>;
  /** What each node knows of it, without those that know nothing. */
  nodes: DestinationOnNode[];
  /** Whether all nodes have answered; otherwise more may be in flight and wait than is shown. */
  complete: boolean;
  /** Since when it is paused. */
  pausedAt?: string;
  /** When the next probe begins; absent unless the breaker is open. */
  nextProbeAt?: string;
  /** The last failure; absent if there was none lately. */
  lastError?: string;
  /** When that was. */
  lastErrorAt?: string;
  /** When an attempt last succeeded; absent if none did lately. */
  lastSuccessAt?: string;
}

/** A destination as one node knows it. */
export interface DestinationOnNode {
  /** The node's name. */
  node: string;
  /** Attempts that are in flight. */
  inFlight: number;
  /** How many attempts may be in flight at once; it shrinks while the destination does not answer. */
  limit: number;
  /** Due timers that wait in memory; further ones may wait in the store. */
  waiting: number;
  /** Attempts that have ended within the last 30 seconds. */
  attempts: number;
  /** Those of them without a response, or with a status of 500 and above. */
  failures: number;
  breaker: Open<BreakerState>;
  /** When the next probe begins; absent unless the breaker is open. */
  nextProbeAt?: string;
}

/** A page of dead rows, the oldest first. */
export interface DeadRowPage {
  rows: DeadRow[];
  /** The cursor of the next page; absent on the last page. */
  nextCursor?: string;
}

/** A row that is refused for good, and waits for somebody to replay or delete it. */
export interface DeadRow {
  /** The row's id. */
  id: string;
  /** The namespace of the timer that it asks for. */
  namespace: string;
  /** That timer's id. */
  timerId: string;
  /** When the row was written. */
  createdAt: Instant;
  /** The error code, and why it was refused. */
  deadReason: string;
}

/** What is tried again. */
export interface ReplayedRows {
  /** How many rows. */
  replayed: number;
  /** Whether there may be more: a request changes up to 10,000 rows, as many as it can in seconds. Repeat it. */
  more: boolean;
}

/** What was deleted. */
export interface DeletedRows {
  /** How many rows. */
  deleted: number;
  /** Whether there may be more: a request changes up to 10,000 rows, as many as it can in seconds. Repeat it. */
  more: boolean;
}

/** A new API key. Only this response contains the key itself. */
export interface CreatedKey {
  /** The key's id, the part between its first two underscores. */
  keyId: string;
  /** What the key allows; each role includes the previous ones. */
  role: Open<KeyRole>;
  /** What the key is for; may be empty. */
  name: string;
  /** Limits the key to these namespaces. */
  namespaces: string[];
  /** Limits the key to these tenants. If both lists are empty, the key is not limited. */
  tenants: string[];
  /** An RFC 3339 instant with a time zone. */
  createdAt: Instant;
  /** The key; send it as `Authorization: Bearer <key>`. */
  key: string;
  /** When the key expires; absent: never. */
  expiresAt?: Instant;
  /**
   * Limits the key to these operations: names such as `timers/create`, which are the paths below the version, for
   * service calls `calls/submit` and its like; groups such as `timers/*`; `read`, for all that a key of role read
   * may use.
   */
  operations?: string[];
  /**
   * Limits the key to requests from these addresses and networks. The client's address counts, which behind a
   * proxy the setting `trusted_proxies` finds.
   */
  sources?: string[];
  /** When the key was used last, accurate to an hour; absent: it was not used yet. */
  lastUsedAt?: string;
}

/** The API keys within the scope of the caller's key, oldest first, including expired ones. */
export interface KeyList {
  keys: ShownKey[];
}

/** An API key without its secret, of which only a hash is stored. */
export interface ShownKey {
  /** The key's id, the part between its first two underscores. */
  keyId: string;
  /** What the key allows; each role includes the previous ones. */
  role: Open<KeyRole>;
  /** What the key is for; may be empty. */
  name: string;
  /** Limits the key to these namespaces. */
  namespaces: string[];
  /** Limits the key to these tenants. If both lists are empty, the key is not limited. */
  tenants: string[];
  /** An RFC 3339 instant with a time zone. */
  createdAt: Instant;
  /** When the key expires; absent: never. */
  expiresAt?: Instant;
  /**
   * Limits the key to these operations: names such as `timers/create`, which are the paths below the version, for
   * service calls `calls/submit` and its like; groups such as `timers/*`; `read`, for all that a key of role read
   * may use.
   */
  operations?: string[];
  /**
   * Limits the key to requests from these addresses and networks. The client's address counts, which behind a
   * proxy the setting `trusted_proxies` finds.
   */
  sources?: string[];
  /** When the key was used last, accurate to an hour; absent: it was not used yet. */
  lastUsedAt?: string;
}

/** A page of the audit trail, newest first. */
export interface AuditPage {
  entries: AuditEntry[];
  /** Cursor of the next page; absent on the last page. */
  nextCursor?: string;
}

/** An entry of the audit trail: what somebody changed, or a sign-in. */
export interface AuditEntry {
  /** An RFC 3339 instant with a time zone. */
  at: Instant;
  /** The action. */
  action: Open<AuditAction>;
  /** The key that acted; null if none was required or the key was unknown. */
  keyId: string | null;
  /** The object of the action; empty for sign-ins. */
  subject: string;
  /** Where the action came from: api, pages, cli, mcp or inbox. */
  source: Open<AuditSource>;
  /** The client's address; empty for the command line and an inbox. */
  address: string;
  /** The node, or the machine on which the command ran. */
  node: string;
  /** Additional facts, such as the changed fields. Never a secret. */
  details: Record<string, unknown>;
}

/**
 * Slots in which something happened, the earliest first, and over all of them the failing destinations, those
 * with the most failures first, and the outages, the latest first.
 */
export interface Statistics {
  /** The start of the first slot; later than asked for if that is not kept any more. */
  from: Instant;
  /** The end of the range. */
  to: Instant;
  resolution: Open<StatisticsResolution>;
  slots: StatisticsSlot[];
  failing: FailingDestination[];
  outages: Outage[];
}

/**
 * What happened in a slot of time. Attempts are counted by their outcome, as `completed`, `rescheduled`,
 * `retried`, `failed` or `superseded` (the timer was changed meanwhile).
 */
export interface StatisticsSlot {
  /** The start of the slot. */
  at: Instant;
  /** Timers created or replaced. */
  created: number;
  /** Timers updated. */
  updated: number;
  /** Timers deleted while they were pending. */
  canceled: number;
  /** Attempts that ended. */
  attempts: number;
  /** Attempts after which the timer was completed. */
  completed: number;
  /** Attempts whose receiver moved the timer. */
  rescheduled: number;
  /** Attempts that failed and were followed by another. */
  retried: number;
  /** Attempts after which the timer had failed. */
  failed: number;
  /** Attempts whose result no longer counted. */
  superseded: number;
  /** Timers that ended because their `expireAfter` had passed. */
  expired: number;
  /** Attempts that began more than a second after their instant. */
  late: number;
  /** Median of the lag, in ms; null without attempts. */
  lagP50Ms: number | null;
  /** 99th percentile of the lag, in ms; too high by at most a half. Null without attempts. */
  lagP99Ms: number | null;
  /** The greatest lag, in ms; null without attempts. */
  lagMaxMs: number | null;
}

/** Failed attempts of one namespace at one path of a host. */
export interface FailingDestination {
  namespace: string;
  /** Scheme, host and port. */
  destination: string;
  /** The path of the URL, without its query. Empty: several, counted together. */
  path: string;
  /** Attempts that failed. */
  failures: number;
  /** Attempts after which the timer had failed, because it is not retried. */
  exhausted: number;
  /** The latest error. */
  lastError: string;
  /** The start of the latest slot with a failure, to ten seconds. */
  lastAt: Instant;
}

/**
 * An interval in which a node fired nothing. `late`, `lateMaxMs` and `createsRefused` are null for a key that is
 * limited to namespaces or tenants, and while the interval lasts.
 */
export interface Outage {
  node: string;
  /** When it began. */
  from: Instant;
  /** lease (the store did not answer in time), clock_skew, clock_jump, unwritten_results. */
  reason: string;
  /** Attempts that were due before its end and began more than a second late because of it. */
  late: number | null;
  /** How late they were at most, in ms. */
  lateMaxMs: number | null;
  /**
   * Creates of timers and schedules that got an error of the server meanwhile: requests, and single timers of a
   * batch.
   */
  createsRefused: number | null;
  /** Whether more late attempts may be counted. */
  counting: boolean;
  /** When it ended; absent while it lasts. */
  to?: Instant;
}

/** An accepted service call: from this request, or from the earlier one that it repeats. */
export interface SubmittedServiceCall {
  /** A UUID of version 7. */
  serviceCallId: string;
  status: Open<ServiceCallStatus>;
  /** Shared by every message and row that results from the submission. */
  correlationId: string;
}

/** A page of service calls, newest first. A page without `nextCursor` is the last. */
export interface ServiceCallPage {
  serviceCalls: ServiceCallSummary[];
  /** `nextCursor` of the previous page. */
  nextCursor?: string;
}

/** A service call, as in lists. */
export interface ServiceCallSummary {
  /** A UUID of version 7. */
  serviceCallId: string;
  /** A UUID of version 7. */
  tenantId: string;
  /** A display name. */
  name: string;
  status: Open<ServiceCallStatus>;
  /** An RFC 3339 instant with a time zone. */
  submittedAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  dueAt: Instant;
  /** Labels to filter lists by. */
  tags: string[];
  /** Shared by every message and row that results from the submission. */
  correlationId: string;
  requestSpec: RequestLine;
  /** Finished attempts; an interrupted execution that was repeated does not count. */
  attempts: number;
  /** When the next attempt is due, while the status is Retrying. */
  nextAttemptAt?: Instant;
  /** An RFC 3339 instant with a time zone. */
  startedAt?: Instant;
  /** An RFC 3339 instant with a time zone. */
  finishedAt?: Instant;
  outcome?: Outcome;
  /** The flow that limits its attempts. */
  flowKey?: string;
  /**
   * What a Running call that has not started waits for: flow, a slot or a token of its flow; credential, that its
   * credential can be sent.
   */
  waitsFor?: Open<TimerWaitsFor>;
}

/** The request's method and URL. */
export interface RequestLine {
  /** The method of the request. */
  method: Open<ServiceCallMethod>;
  /** The http or https URL. */
  url: string;
}

/**
 * How the call ended or, while it is Retrying, how its last attempt ended: the response, if there was one, and
 * the error, if it failed.
 */
export interface Outcome {
  responseMeta?: ResponseMeta;
  errorMeta?: ErrorMeta;
}

/** The service's response. */
export interface ResponseMeta {
  status: number;
  /** Headers; secret values are redacted. */
  headers: Record<string, string>;
  /** The first part of the body. */
  bodySnippet: string;
  /** Whether the body was longer than the snippet. */
  truncated: boolean;
  /** From the dispatch of the request to the end of the response, in milliseconds. */
  latencyMs: number;
}

/** Why the call failed. */
export interface ErrorMeta {
  /** A stable code. */
  kind: Open<FailureKind>;
  message: string;
  /** From the dispatch of the request to the end of the response, in milliseconds. */
  latencyMs: number;
}

/** Everything stored under the correlation id of a service call, in order of time, each entry after its cause. */
export interface ServiceCallTrace {
  /** A UUID of version 7. */
  serviceCallId: string;
  /** Shared by every message and row that results from the submission. */
  correlationId: string;
  entries: TraceEntry[];
}

/** One result of a submission: a message or a row. */
export interface TraceEntry {
  /** With millisecond precision; for a row, when it entered the state shown. */
  at: Instant;
  /** message, or a table's name. */
  kind: string;
  /** The message's type, or the event. */
  name: string;
  /** The id of the message or row. */
  id: string;
  detail: Record<string, unknown>;
  /** The message that caused this one. */
  causationId?: string;
}

/** A service call in full. */
export interface ServiceCall {
  /** A UUID of version 7. */
  serviceCallId: string;
  /** A UUID of version 7. */
  tenantId: string;
  /** A display name. */
  name: string;
  status: Open<ServiceCallStatus>;
  /** An RFC 3339 instant with a time zone. */
  submittedAt: Instant;
  /** An RFC 3339 instant with a time zone. */
  dueAt: Instant;
  /** Labels to filter lists by. */
  tags: string[];
  /** Shared by every message and row that results from the submission. */
  correlationId: string;
  requestSpec: ShownRequest;
  /** Finished attempts; an interrupted execution that was repeated does not count. */
  attempts: number;
  executions: Execution[];
  /** When the next attempt is due, while the status is Retrying. */
  nextAttemptAt?: Instant;
  /** An RFC 3339 instant with a time zone. */
  startedAt?: Instant;
  /** An RFC 3339 instant with a time zone. */
  finishedAt?: Instant;
  outcome?: Outcome;
  /** The flow that limits its attempts. */
  flowKey?: string;
  /**
   * What a Running call that has not started waits for: flow, a slot or a token of its flow; credential, that its
   * credential can be sent.
   */
  waitsFor?: Open<TimerWaitsFor>;
  /** Who is notified when it has failed. */
  onFailure?: HookAnswer;
  /** Who is notified when it has succeeded. */
  onSuccess?: HookAnswer;
}

/** The request; secrets are redacted. */
export interface ShownRequest {
  /** The method of the request. */
  method: Open<ServiceCallMethod>;
  /** The http or https URL. */
  url: string;
  /** Headers; secret values are redacted. */
  headers: Record<string, string>;
  /** Any JSON: a string is sent as plain text, any other value as JSON. */
  body?: unknown;
  retryPolicy?: RetryPolicyAnswer;
  /** The credential that the request has. */
  credential?: string;
}

/** One execution of the request. Without `finishedAt` it is in flight. */
export interface Execution {
  /** Its number among the call's executions, from 1. */
  number: number;
  /** A UUID of version 7. */
  executionId: string;
  /** An RFC 3339 instant with a time zone. */
  startedAt: Instant;
  request: ExecutedRequest;
  /** An RFC 3339 instant with a time zone. */
  finishedAt?: Instant;
  response?: ExecutedResponse;
  errorMessage?: string;
}

/** The request that was sent. */
export interface ExecutedRequest {
  /** The method of the request. */
  method: Open<ServiceCallMethod>;
  /** The http or https URL. */
  url: string;
  /** Headers; secret values are redacted. */
  headers: Record<string, string>;
  /** The first part of the body. */
  body?: string;
}

/** The response that was received. */
export interface ExecutedResponse {
  status: number;
  /** Headers; secret values are redacted. */
  headers: Record<string, string>;
  /** The first part of the body. */
  body: string;
}

/** The new secret. Only this response shows it. */
export interface RotatedTenantSecret {
  /** The tenant. */
  tenantId: string;
  /** The new secret, for the called services. */
  secret: string;
  /** Until when the previous secret keeps signing; absent if only the new one signs. */
  previousUntil?: Instant;
}

/** Nodes, shards, and whether the responding node is dispatching timers. */
export interface Cluster {
  totalShards: number;
  dispatching: boolean;
  nodes: Node[];
  shards: Shard[];
  dispatchPausedReason?: string;
}

/**
 * A node of the cluster. `self` marks the node that responds. Fields that only the node itself knows are null if
 * it could not be reached: `version` (of its release), `dispatching`, `agent` (whether it runs the service
 * agent), `windowTimers`, `lagMs`, `largestShardBytes`.
 */
export interface Node {
  node: string;
  incarnation: string;
  address: string;
  alive: boolean;
  self: boolean;
  shards: number;
  /** Whether the node is handing over its shards. */
  leaving: boolean;
  /** Whether its clock differs from the store's, so that other nodes take its shards if there are any. */
  skewed: boolean;
  version: string | null;
  dispatching: boolean | null;
  agent: boolean | null;
  windowTimers: number | null;
  /** How long its oldest due timer has waited, in ms, since its instant, or since it was accepted if later. */
  lagMs: number | null;
  /** Whether another live node has the same name: then only one of them gets shards. */
  sharesName: boolean;
  /** Whether its `cluster.secret` differs from that of nodes that started earlier, so that it owns no shards. */
  secretDiffers: boolean;
  /** Size of the largest shard, as the database reported it to the node. Null with databases that report no sizes. */
  largestShardBytes: number | null;
  /** Since when it fires nothing; null while it fires, and if it could not be reached. */
  pausedSince: Instant | null;
  /**
   * Why it fires nothing: starting, lease (the store did not answer in time), clock_skew, clock_jump,
   * unwritten_results or stopped; null like pausedSince.
   */
  pausedReason: string | null;
  /** Null if the node could not be reached. */
  vitals: Vitals | null;
}

/**
 * A node's vital data. Latencies and the lag of the event loop are those of the last minute; latencies are null
 * if nothing was measured.
 */
export interface Vitals {
  /** Seconds since the process started. */
  uptimeS: number;
  /** Processor cores in use, over the last minute. */
  cpuCores: number;
  /** Memory of the process in RAM; null if the system does not report it. */
  memoryBytes: number | null;
  /** By how much the event loop was late at most, in ms. */
  loopLagMs: number;
  /** Median of the time that a small read of the store takes, in ms. */
  readP50Ms: number | null;
  /** Its 99th percentile. */
  readP99Ms: number | null;
  /** Median of the time that a transaction takes, in ms. */
  commitP50Ms: number | null;
  /** Its 99th percentile. */
  commitP99Ms: number | null;
  /** Callbacks in flight. */
  inFlight: number;
  /** Connections to receivers. */
  callbackConnections: number;
  /** Connections of clients. */
  clientConnections: number;
  /** The store's latest error; null if there was none since the start. */
  storeError: string | null;
  /** When that was. */
  storeErrorAt: Instant | null;
}

/** A shard; the statistics of its window are present only if its owner could be reached. `version` is its epoch. */
export interface Shard {
  shardId: number;
  version: number;
  owner: string | null;
  ownedHere: boolean;
  windowTimers?: number;
  inFlight?: number;
  /** An RFC 3339 instant with a time zone. */
  completeTo?: Instant;
  /** How long its oldest due timer has waited, in ms, since its instant, or since it was accepted if later. */
  lagMs?: number;
}

/**
 * Which node owns each shard, as the responding node last read it. `owners` has for each shard, by its number,
 * the index of its owner in `nodes`, or null while none is known.
 */
export interface ShardOwners {
  totalShards: number;
  nodes: OwnerNode[];
  owners: (number | null)[];
}

/** A node of the cluster, for clients that send writes to the owners of shards. */
export interface OwnerNode {
  /** The URL of the node's API, from its setting `advertise_api`; null if it has none of its own. */
  apiUrl: string | null;
  alive: boolean;
  /** Whether the node is handing over its shards. */
  leaving: boolean;
  /** Whether its clock differs from the store's, so that other nodes take its shards. */
  skewed: boolean;
}
