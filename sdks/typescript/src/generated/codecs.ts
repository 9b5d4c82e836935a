// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
/** How requests are written, and what answers have in any case. */

import { type Converters, each, encode, type Sent } from "../codec.js";
import { encodeDuration, encodeInstant } from "../values.js";
import type {
  Attempt,
  AuditEntry,
  AuditPage,
  BackfillSchedule,
  BadField,
  BatchCreateTimers,
  BatchResult,
  BatchResults,
  Cluster,
  CreatedKey,
  CreateKey,
  CreateNamespace,
  CreateSchedule,
  CreateTimer,
  ErrorMeta,
  ExecutedRequest,
  ExecutedResponse,
  Execution,
  Explanation,
  ItemError,
  KeyList,
  ListAudit,
  ListSchedules,
  ListTimers,
  MissedRange,
  Namespace,
  NamespaceList,
  Node,
  Occurrence,
  OccurrencePage,
  OccurrenceRun,
  Outcome,
  OwnerNode,
  Preview,
  PreviewSchedule,
  RawBody,
  RawBodyAnswer,
  RequestLine,
  RequestSpec,
  ResponseMeta,
  RetryPolicy,
  RetryPolicyAnswer,
  RevokeKey,
  RotatedSecret,
  RotateSecret,
  RunAnswer,
  RunPageAnswer,
  Schedule,
  ScheduleHistory,
  ScheduleName,
  SchedulePage,
  ServiceCall,
  ServiceCallPage,
  ServiceCallSummary,
  ServiceCallTrace,
  Shard,
  ShardOwners,
  ShownKey,
  ShownRequest,
  SubmitServiceCall,
  SubmittedServiceCall,
  Timer,
  TimerHistory,
  TimerName,
  TimerPage,
  TraceEntry,
  UpdateNamespace,
  UpdateSchedule,
  UpdateTimer,
} from "./models.js";

const ofRequestSpec: Converters<RequestSpec> = {
  retryPolicy: encodeRetryPolicy,
};

/** What is sent; members that are undefined stay out. */
export function encodeRequestSpec(source: RequestSpec): Sent {
  return encode(source, ofRequestSpec);
}

const ofSubmitServiceCall: Converters<SubmitServiceCall> = {
  requestSpec: encodeRequestSpec,
  dueAt: encodeInstant,
  delay: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeSubmitServiceCall(source: SubmitServiceCall): Sent {
  return encode(source, ofSubmitServiceCall);
}

const ofListAudit: Converters<ListAudit> = {
  after: encodeInstant,
  before: encodeInstant,
};

/** What is sent; members that are undefined stay out. */
export function encodeListAudit(source: ListAudit): Sent {
  return encode(source, ofListAudit);
}

/** What is sent; members that are undefined stay out. */
export function encodeRevokeKey(source: RevokeKey): Sent {
  return encode(source);
}

const ofCreateKey: Converters<CreateKey> = {
  expiresAt: encodeInstant,
};

/** What is sent; members that are undefined stay out. */
export function encodeCreateKey(source: CreateKey): Sent {
  return encode(source, ofCreateKey);
}

const ofRotateSecret: Converters<RotateSecret> = {
  grace: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeRotateSecret(source: RotateSecret): Sent {
  return encode(source, ofRotateSecret);
}

const ofUpdateNamespace: Converters<UpdateNamespace> = {
  retention: encodeDuration,
  retryPolicy: encodeRetryPolicy,
};

/** What is sent; members that are undefined stay out. */
export function encodeUpdateNamespace(source: UpdateNamespace): Sent {
  return encode(source, ofUpdateNamespace);
}

const ofCreateNamespace: Converters<CreateNamespace> = {
  retention: encodeDuration,
  retryPolicy: encodeRetryPolicy,
};

/** What is sent; members that are undefined stay out. */
export function encodeCreateNamespace(source: CreateNamespace): Sent {
  return encode(source, ofCreateNamespace);
}

/** What is sent; members that are undefined stay out. */
export function encodeScheduleHistory(source: ScheduleHistory): Sent {
  return encode(source);
}

const ofPreviewSchedule: Converters<PreviewSchedule> = {
  every: encodeDuration,
  anchor: encodeInstant,
  startAt: encodeInstant,
  endAt: encodeInstant,
};

/** What is sent; members that are undefined stay out. */
export function encodePreviewSchedule(source: PreviewSchedule): Sent {
  return encode(source, ofPreviewSchedule);
}

const ofBackfillSchedule: Converters<BackfillSchedule> = {
  after: encodeInstant,
  before: encodeInstant,
};

/** What is sent; members that are undefined stay out. */
export function encodeBackfillSchedule(source: BackfillSchedule): Sent {
  return encode(source, ofBackfillSchedule);
}

/** What is sent; members that are undefined stay out. */
export function encodeListSchedules(source: ListSchedules): Sent {
  return encode(source);
}

const ofUpdateSchedule: Converters<UpdateSchedule> = {
  every: encodeDuration,
  anchor: encodeInstant,
  startAt: encodeInstant,
  endAt: encodeInstant,
  jitter: encodeDuration,
  catchUpWindow: encodeDuration,
  body: encodeRawBody,
  retryPolicy: encodeRetryPolicy,
  expireAfter: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeUpdateSchedule(source: UpdateSchedule): Sent {
  return encode(source, ofUpdateSchedule);
}

/** What is sent; members that are undefined stay out. */
export function encodeScheduleName(source: ScheduleName): Sent {
  return encode(source);
}

const ofCreateSchedule: Converters<CreateSchedule> = {
  every: encodeDuration,
  anchor: encodeInstant,
  startAt: encodeInstant,
  endAt: encodeInstant,
  jitter: encodeDuration,
  catchUpWindow: encodeDuration,
  body: encodeRawBody,
  retryPolicy: encodeRetryPolicy,
  expireAfter: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeCreateSchedule(source: CreateSchedule): Sent {
  return encode(source, ofCreateSchedule);
}

const ofBatchCreateTimers: Converters<BatchCreateTimers> = {
  timers: each(encodeCreateTimer),
};

/** What is sent; members that are undefined stay out. */
export function encodeBatchCreateTimers(source: BatchCreateTimers): Sent {
  return encode(source, ofBatchCreateTimers);
}

const ofListTimers: Converters<ListTimers> = {
  executeAfter: encodeInstant,
  executeBefore: encodeInstant,
};

/** What is sent; members that are undefined stay out. */
export function encodeListTimers(source: ListTimers): Sent {
  return encode(source, ofListTimers);
}

const ofUpdateTimer: Converters<UpdateTimer> = {
  executeAt: encodeInstant,
  delay: encodeDuration,
  body: encodeRawBody,
  retryPolicy: encodeRetryPolicy,
  expireAfter: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeUpdateTimer(source: UpdateTimer): Sent {
  return encode(source, ofUpdateTimer);
}

/** What is sent; members that are undefined stay out. */
export function encodeTimerHistory(source: TimerHistory): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeTimerName(source: TimerName): Sent {
  return encode(source);
}

const ofRetryPolicy: Converters<RetryPolicy> = {
  maxAttemptsDuration: encodeDuration,
  initialInterval: encodeDuration,
  maxInterval: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeRetryPolicy(source: RetryPolicy): Sent {
  return encode(source, ofRetryPolicy);
}

/** What is sent; members that are undefined stay out. */
export function encodeRawBody(source: RawBody): Sent {
  return encode(source);
}

const ofCreateTimer: Converters<CreateTimer> = {
  executeAt: encodeInstant,
  delay: encodeDuration,
  body: encodeRawBody,
  retryPolicy: encodeRetryPolicy,
  expireAfter: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeCreateTimer(source: CreateTimer): Sent {
  return encode(source, ofCreateTimer);
}

/** The answers by name. */
export interface Answers {
  Timer: Timer;
  Attempt: Attempt;
  RetryPolicyAnswer: RetryPolicyAnswer;
  RawBodyAnswer: RawBodyAnswer;
  Explanation: Explanation;
  RunPageAnswer: RunPageAnswer;
  RunAnswer: RunAnswer;
  TimerPage: TimerPage;
  BatchResults: BatchResults;
  BatchResult: BatchResult;
  ItemError: ItemError;
  BadField: BadField;
  Schedule: Schedule;
  Occurrence: Occurrence;
  SchedulePage: SchedulePage;
  Preview: Preview;
  OccurrencePage: OccurrencePage;
  OccurrenceRun: OccurrenceRun;
  MissedRange: MissedRange;
  Namespace: Namespace;
  NamespaceList: NamespaceList;
  RotatedSecret: RotatedSecret;
  CreatedKey: CreatedKey;
  KeyList: KeyList;
  ShownKey: ShownKey;
  AuditPage: AuditPage;
  AuditEntry: AuditEntry;
  SubmittedServiceCall: SubmittedServiceCall;
  ServiceCallPage: ServiceCallPage;
  ServiceCallSummary: ServiceCallSummary;
  RequestLine: RequestLine;
  Outcome: Outcome;
  ResponseMeta: ResponseMeta;
  ErrorMeta: ErrorMeta;
  ServiceCallTrace: ServiceCallTrace;
  TraceEntry: TraceEntry;
  ServiceCall: ServiceCall;
  ShownRequest: ShownRequest;
  Execution: Execution;
  ExecutedRequest: ExecutedRequest;
  ExecutedResponse: ExecutedResponse;
  Cluster: Cluster;
  Node: Node;
  Shard: Shard;
  ShardOwners: ShardOwners;
  OwnerNode: OwnerNode;
}

/** The members that an answer has in any case. */
export const REQUIRED: { readonly [Name in keyof Answers]: readonly (keyof Answers[Name])[] } = {
  Timer: ["namespace", "id", "timerUuid", "shardId", "status", "executeAt", "callbackUrl", "method", "headers", "callbackTimeoutSeconds", "tags", "attempts", "attemptLog", "createdAt", "updatedAt"],
  Attempt: ["startedAt", "durationMs"],
  RetryPolicyAnswer: ["maxAttempts", "initialInterval", "backoffMultiplier", "maxInterval"],
  RawBodyAnswer: ["contentType"],
  Explanation: ["state", "shard", "owner", "sentence"],
  RunPageAnswer: ["runs"],
  RunAnswer: ["run", "executeAt", "status", "attempts", "attemptLog"],
  TimerPage: ["timers"],
  BatchResults: ["results"],
  BatchResult: [],
  ItemError: ["error", "message", "status", "errors"],
  BadField: ["path", "reason"],
  Schedule: ["namespace", "id", "scheduleUuid", "shardId", "status", "sentence", "nextInstants", "counts", "missed", "triggersWaiting", "backfillsWaiting", "catchUp", "jitter", "pauseAfterFailures", "callbackUrl", "method", "headers", "callbackTimeoutSeconds", "tags", "createdAt", "updatedAt"],
  Occurrence: ["instant", "source", "outcome", "finishedAt", "attempts"],
  SchedulePage: ["schedules"],
  Preview: ["instants", "sentence"],
  OccurrencePage: ["occurrences"],
  OccurrenceRun: ["run", "instant", "status", "attempts", "attemptLog", "missed"],
  MissedRange: ["reason", "count", "firstAt", "lastAt"],
  Namespace: ["name", "numShards", "history", "retention", "paused", "signed", "answers", "retryPolicy", "createdAt", "updatedAt"],
  NamespaceList: ["namespaces"],
  RotatedSecret: ["name", "secret"],
  CreatedKey: ["keyId", "role", "name", "namespaces", "tenants", "createdAt", "key"],
  KeyList: ["keys"],
  ShownKey: ["keyId", "role", "name", "namespaces", "tenants", "createdAt"],
  AuditPage: ["entries"],
  AuditEntry: ["at", "action", "keyId", "subject", "source", "address", "node", "details"],
  SubmittedServiceCall: ["serviceCallId", "status", "correlationId"],
  ServiceCallPage: ["serviceCalls"],
  ServiceCallSummary: ["serviceCallId", "tenantId", "name", "status", "submittedAt", "dueAt", "tags", "correlationId", "requestSpec", "attempts"],
  RequestLine: ["method", "url"],
  Outcome: [],
  ResponseMeta: ["status", "headers", "bodySnippet", "truncated", "latencyMs"],
  ErrorMeta: ["kind", "message", "latencyMs"],
  ServiceCallTrace: ["serviceCallId", "correlationId", "entries"],
  TraceEntry: ["at", "kind", "name", "id", "detail"],
  ServiceCall: ["serviceCallId", "tenantId", "name", "status", "submittedAt", "dueAt", "tags", "correlationId", "requestSpec", "attempts", "executions"],
  ShownRequest: ["method", "url", "headers"],
  Execution: ["number", "executionId", "startedAt", "request"],
  ExecutedRequest: ["method", "url", "headers"],
  ExecutedResponse: ["status", "headers", "body"],
  Cluster: ["totalShards", "dispatching", "nodes", "shards"],
  Node: ["node", "incarnation", "address", "alive", "self", "shards", "leaving", "skewed", "version", "dispatching", "agent", "windowTimers", "lagMs", "sharesName", "secretDiffers", "largestShardBytes"],
  Shard: ["shardId", "version", "owner", "ownedHere"],
  ShardOwners: ["totalShards", "nodes", "owners"],
  OwnerNode: ["apiUrl", "alive", "leaving", "skewed"],
};
