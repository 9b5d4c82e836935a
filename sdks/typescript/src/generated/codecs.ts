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
  Calendar,
  CalendarId,
  CalendarPage,
  CalendarSummary,
  CallbackBatch,
  CallbackBatchAnswer,
  CallHook,
  ChangeInbox,
  Cluster,
  CreatedKey,
  CreateJob,
  CreateKey,
  CreateNamespace,
  CreateSchedule,
  CreateTimer,
  Credential,
  CredentialId,
  CredentialPage,
  DateRange,
  DateRangeAnswer,
  DeadRow,
  DeadRowPage,
  Debounced,
  DeleteCalendar,
  DeleteCredential,
  DeletedRows,
  DeleteFlow,
  DeleteMonitor,
  DeleteNamespace,
  DeleteSchedule,
  Destination,
  DestinationList,
  DestinationName,
  DestinationOnNode,
  DismissedFailures,
  DismissFailures,
  ErrorMeta,
  ExcludedInstant,
  ExecutedRequest,
  ExecutedResponse,
  Execution,
  Explanation,
  FailingDestination,
  Failure,
  FailureGroup,
  FailureList,
  FailurePage,
  FailureSample,
  Flow,
  FlowLimits,
  FlowLimitsAnswer,
  FlowName,
  FlowPage,
  FlowRate,
  FlowRateAnswer,
  GetNamespace,
  GetStatistics,
  Hook,
  HookAnswer,
  ItemError,
  Job,
  JobAnswer,
  JobFailure,
  JobFilter,
  JobFilterAnswer,
  JobList,
  JobName,
  KeyList,
  ListAudit,
  ListCalendars,
  ListCredentials,
  ListDestinations,
  ListFailureMembers,
  ListFailures,
  ListFlows,
  ListInbox,
  ListJobs,
  ListMonitors,
  ListSchedules,
  ListTimers,
  MissedRange,
  Monitor,
  MonitorAnswer,
  MonitorHistory,
  MonitorName,
  MonitorPage,
  MonitorPeriod,
  MonitorPeriods,
  MonitorPut,
  MonitorRotated,
  Namespace,
  NamespaceList,
  Node,
  Occurrence,
  OccurrencePage,
  OccurrenceRun,
  OpenIdConfiguration,
  Outage,
  Outcome,
  OwnerNode,
  PauseFlow,
  PingMonitor,
  Preview,
  PreviewSchedule,
  PutCalendar,
  PutCredential,
  PutFlow,
  PutMonitor,
  Quotas,
  QuotasAnswer,
  RawBody,
  RawBodyAnswer,
  ReplayedRows,
  ReplaySchedule,
  ReplayTimers,
  RequestLine,
  RequestSpec,
  ResponseMeta,
  RetryPolicy,
  RetryPolicyAnswer,
  RevokeKey,
  RotatedSecret,
  RotatedTenantSecret,
  RotateSecret,
  RotateTenantSecret,
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
  SetJobRate,
  Shard,
  ShardOwners,
  ShownKey,
  ShownRequest,
  SigningKey,
  SigningKeySet,
  SkipSchedule,
  Statistics,
  StatisticsSlot,
  SubmitServiceCall,
  SubmittedServiceCall,
  TestCredential,
  TestedCredential,
  TestStep,
  Timer,
  TimerHistory,
  TimerName,
  TimerPage,
  TraceEntry,
  UpdateNamespace,
  UpdateSchedule,
  UpdateTimer,
  Vitals,
} from "./models.js";

const ofRotateTenantSecret: Converters<RotateTenantSecret> = {
  grace: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeRotateTenantSecret(source: RotateTenantSecret): Sent {
  return encode(source, ofRotateTenantSecret);
}

/** What is sent; members that are undefined stay out. */
export function encodeCallHook(source: CallHook): Sent {
  return encode(source);
}

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
  onFailure: encodeCallHook,
  onSuccess: encodeCallHook,
};

/** What is sent; members that are undefined stay out. */
export function encodeSubmitServiceCall(source: SubmitServiceCall): Sent {
  return encode(source, ofSubmitServiceCall);
}

const ofGetStatistics: Converters<GetStatistics> = {
  from: encodeInstant,
  to: encodeInstant,
};

/** What is sent; members that are undefined stay out. */
export function encodeGetStatistics(source: GetStatistics): Sent {
  return encode(source, ofGetStatistics);
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

/** What is sent; members that are undefined stay out. */
export function encodeChangeInbox(source: ChangeInbox): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeListInbox(source: ListInbox): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeDestinationName(source: DestinationName): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeListDestinations(source: ListDestinations): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeMonitorHistory(source: MonitorHistory): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodePingMonitor(source: PingMonitor): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeDeleteMonitor(source: DeleteMonitor): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeListMonitors(source: ListMonitors): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeMonitorName(source: MonitorName): Sent {
  return encode(source);
}

const ofPutMonitor: Converters<PutMonitor> = {
  every: encodeDuration,
  grace: encodeDuration,
  repeat: encodeDuration,
  onLate: encodeHook,
  onRecovery: encodeHook,
};

/** What is sent; members that are undefined stay out. */
export function encodePutMonitor(source: PutMonitor): Sent {
  return encode(source, ofPutMonitor);
}

/** What is sent; members that are undefined stay out. */
export function encodeDeleteCredential(source: DeleteCredential): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeTestCredential(source: TestCredential): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeListCredentials(source: ListCredentials): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeCredentialId(source: CredentialId): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodePutCredential(source: PutCredential): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeDeleteCalendar(source: DeleteCalendar): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeListCalendars(source: ListCalendars): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeCalendarId(source: CalendarId): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeDateRange(source: DateRange): Sent {
  return encode(source);
}

const ofPutCalendar: Converters<PutCalendar> = {
  ranges: each(encodeDateRange),
};

/** What is sent; members that are undefined stay out. */
export function encodePutCalendar(source: PutCalendar): Sent {
  return encode(source, ofPutCalendar);
}

/** What is sent; members that are undefined stay out. */
export function encodeDeleteFlow(source: DeleteFlow): Sent {
  return encode(source);
}

const ofPauseFlow: Converters<PauseFlow> = {
  until: encodeInstant,
};

/** What is sent; members that are undefined stay out. */
export function encodePauseFlow(source: PauseFlow): Sent {
  return encode(source, ofPauseFlow);
}

/** What is sent; members that are undefined stay out. */
export function encodeListFlows(source: ListFlows): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeFlowName(source: FlowName): Sent {
  return encode(source);
}

const ofPutFlow: Converters<PutFlow> = {
  perKey: encodeFlowLimits,
  total: encodeFlowLimits,
  callbackBatch: encodeCallbackBatch,
};

/** What is sent; members that are undefined stay out. */
export function encodePutFlow(source: PutFlow): Sent {
  return encode(source, ofPutFlow);
}

const ofRotateSecret: Converters<RotateSecret> = {
  grace: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeRotateSecret(source: RotateSecret): Sent {
  return encode(source, ofRotateSecret);
}

/** What is sent; members that are undefined stay out. */
export function encodeDeleteNamespace(source: DeleteNamespace): Sent {
  return encode(source);
}

const ofUpdateNamespace: Converters<UpdateNamespace> = {
  retention: encodeDuration,
  retryPolicy: encodeRetryPolicy,
  limits: encodeFlowLimits,
  quotas: encodeQuotas,
  callbackBatch: encodeCallbackBatch,
  onFailure: encodeHook,
  onSuccess: encodeHook,
  onRecovery: encodeHook,
  onMissed: encodeHook,
  onPaused: encodeHook,
  onLate: encodeHook,
};

/** What is sent; members that are undefined stay out. */
export function encodeUpdateNamespace(source: UpdateNamespace): Sent {
  return encode(source, ofUpdateNamespace);
}

/** What is sent; members that are undefined stay out. */
export function encodeGetNamespace(source: GetNamespace): Sent {
  return encode(source);
}

const ofCallbackBatch: Converters<CallbackBatch> = {
  linger: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeCallbackBatch(source: CallbackBatch): Sent {
  return encode(source, ofCallbackBatch);
}

/** What is sent; members that are undefined stay out. */
export function encodeQuotas(source: Quotas): Sent {
  return encode(source);
}

const ofFlowRate: Converters<FlowRate> = {
  per: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeFlowRate(source: FlowRate): Sent {
  return encode(source, ofFlowRate);
}

const ofFlowLimits: Converters<FlowLimits> = {
  rate: encodeFlowRate,
};

/** What is sent; members that are undefined stay out. */
export function encodeFlowLimits(source: FlowLimits): Sent {
  return encode(source, ofFlowLimits);
}

const ofCreateNamespace: Converters<CreateNamespace> = {
  retention: encodeDuration,
  retryPolicy: encodeRetryPolicy,
  limits: encodeFlowLimits,
  quotas: encodeQuotas,
  callbackBatch: encodeCallbackBatch,
  onFailure: encodeHook,
  onSuccess: encodeHook,
  onRecovery: encodeHook,
  onMissed: encodeHook,
  onPaused: encodeHook,
  onLate: encodeHook,
};

/** What is sent; members that are undefined stay out. */
export function encodeCreateNamespace(source: CreateNamespace): Sent {
  return encode(source, ofCreateNamespace);
}

/** What is sent; members that are undefined stay out. */
export function encodeSetJobRate(source: SetJobRate): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeListJobs(source: ListJobs): Sent {
  return encode(source);
}

/** What is sent; members that are undefined stay out. */
export function encodeJobName(source: JobName): Sent {
  return encode(source);
}

const ofJobFilter: Converters<JobFilter> = {
  executeAfter: encodeInstant,
  executeBefore: encodeInstant,
  createdBefore: encodeInstant,
  createdAfter: encodeInstant,
};

/** What is sent; members that are undefined stay out. */
export function encodeJobFilter(source: JobFilter): Sent {
  return encode(source, ofJobFilter);
}

const ofCreateJob: Converters<CreateJob> = {
  filter: encodeJobFilter,
};

/** What is sent; members that are undefined stay out. */
export function encodeCreateJob(source: CreateJob): Sent {
  return encode(source, ofCreateJob);
}

/** What is sent; members that are undefined stay out. */
export function encodeDismissFailures(source: DismissFailures): Sent {
  return encode(source);
}

const ofListFailureMembers: Converters<ListFailureMembers> = {
  since: encodeInstant,
};

/** What is sent; members that are undefined stay out. */
export function encodeListFailureMembers(source: ListFailureMembers): Sent {
  return encode(source, ofListFailureMembers);
}

const ofListFailures: Converters<ListFailures> = {
  since: encodeInstant,
};

/** What is sent; members that are undefined stay out. */
export function encodeListFailures(source: ListFailures): Sent {
  return encode(source, ofListFailures);
}

/** What is sent; members that are undefined stay out. */
export function encodeDeleteSchedule(source: DeleteSchedule): Sent {
  return encode(source);
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

const ofReplaySchedule: Converters<ReplaySchedule> = {
  instants: each(encodeInstant),
};

/** What is sent; members that are undefined stay out. */
export function encodeReplaySchedule(source: ReplaySchedule): Sent {
  return encode(source, ofReplaySchedule);
}

const ofSkipSchedule: Converters<SkipSchedule> = {
  instant: encodeInstant,
};

/** What is sent; members that are undefined stay out. */
export function encodeSkipSchedule(source: SkipSchedule): Sent {
  return encode(source, ofSkipSchedule);
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
  body: encodeRawBody,
  retryPolicy: encodeRetryPolicy,
  expireAfter: encodeDuration,
  onFailure: encodeHook,
  onSuccess: encodeHook,
  onRecovery: encodeHook,
  every: encodeDuration,
  anchor: encodeInstant,
  startAt: encodeInstant,
  endAt: encodeInstant,
  jitter: encodeDuration,
  catchUpWindow: encodeDuration,
  onMissed: encodeHook,
  onPaused: encodeHook,
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
  body: encodeRawBody,
  retryPolicy: encodeRetryPolicy,
  expireAfter: encodeDuration,
  onFailure: encodeHook,
  onSuccess: encodeHook,
  onRecovery: encodeHook,
  every: encodeDuration,
  anchor: encodeInstant,
  startAt: encodeInstant,
  endAt: encodeInstant,
  jitter: encodeDuration,
  catchUpWindow: encodeDuration,
  onMissed: encodeHook,
  onPaused: encodeHook,
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

const ofReplayTimers: Converters<ReplayTimers> = {
  executeAt: encodeInstant,
  delay: encodeDuration,
};

/** What is sent; members that are undefined stay out. */
export function encodeReplayTimers(source: ReplayTimers): Sent {
  return encode(source, ofReplayTimers);
}

const ofUpdateTimer: Converters<UpdateTimer> = {
  executeAt: encodeInstant,
  delay: encodeDuration,
  body: encodeRawBody,
  retryPolicy: encodeRetryPolicy,
  expireAfter: encodeDuration,
  onFailure: encodeHook,
  onSuccess: encodeHook,
  onRecovery: encodeHook,
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

/** What is sent; members that are undefined stay out. */
export function encodeHook(source: Hook): Sent {
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
  maxDelay: encodeDuration,
  body: encodeRawBody,
  retryPolicy: encodeRetryPolicy,
  expireAfter: encodeDuration,
  onFailure: encodeHook,
  onSuccess: encodeHook,
  onRecovery: encodeHook,
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
  HookAnswer: HookAnswer;
  Debounced: Debounced;
  RunPageAnswer: RunPageAnswer;
  RunAnswer: RunAnswer;
  BatchResults: BatchResults;
  BatchResult: BatchResult;
  ItemError: ItemError;
  BadField: BadField;
  TimerPage: TimerPage;
  Schedule: Schedule;
  Occurrence: Occurrence;
  SchedulePage: SchedulePage;
  Preview: Preview;
  ExcludedInstant: ExcludedInstant;
  OccurrencePage: OccurrencePage;
  OccurrenceRun: OccurrenceRun;
  MissedRange: MissedRange;
  FailureList: FailureList;
  FailureGroup: FailureGroup;
  Failure: Failure;
  FailureSample: FailureSample;
  FailurePage: FailurePage;
  DismissedFailures: DismissedFailures;
  JobAnswer: JobAnswer;
  Job: Job;
  JobFilterAnswer: JobFilterAnswer;
  JobFailure: JobFailure;
  JobList: JobList;
  Namespace: Namespace;
  FlowLimitsAnswer: FlowLimitsAnswer;
  FlowRateAnswer: FlowRateAnswer;
  QuotasAnswer: QuotasAnswer;
  CallbackBatchAnswer: CallbackBatchAnswer;
  NamespaceList: NamespaceList;
  RotatedSecret: RotatedSecret;
  Flow: Flow;
  FlowPage: FlowPage;
  Calendar: Calendar;
  DateRangeAnswer: DateRangeAnswer;
  CalendarPage: CalendarPage;
  CalendarSummary: CalendarSummary;
  Credential: Credential;
  CredentialPage: CredentialPage;
  TestedCredential: TestedCredential;
  TestStep: TestStep;
  SigningKeySet: SigningKeySet;
  SigningKey: SigningKey;
  OpenIdConfiguration: OpenIdConfiguration;
  MonitorPut: MonitorPut;
  Monitor: Monitor;
  MonitorAnswer: MonitorAnswer;
  MonitorPage: MonitorPage;
  MonitorRotated: MonitorRotated;
  MonitorPeriods: MonitorPeriods;
  MonitorPeriod: MonitorPeriod;
  DestinationList: DestinationList;
  Destination: Destination;
  DestinationOnNode: DestinationOnNode;
  DeadRowPage: DeadRowPage;
  DeadRow: DeadRow;
  ReplayedRows: ReplayedRows;
  DeletedRows: DeletedRows;
  CreatedKey: CreatedKey;
  KeyList: KeyList;
  ShownKey: ShownKey;
  AuditPage: AuditPage;
  AuditEntry: AuditEntry;
  Statistics: Statistics;
  StatisticsSlot: StatisticsSlot;
  FailingDestination: FailingDestination;
  Outage: Outage;
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
  RotatedTenantSecret: RotatedTenantSecret;
  Cluster: Cluster;
  Node: Node;
  Vitals: Vitals;
  Shard: Shard;
  ShardOwners: ShardOwners;
  OwnerNode: OwnerNode;
}

/** What an answer has in any case: its members, and those that are answers themselves, with their names; true: lists of such. */
export interface Shape<Answer> {
  readonly required: readonly (keyof Answer & string)[];
  readonly nested: readonly (readonly [keyof Answer & string, keyof Answers, boolean])[];
}

export const SHAPES: { readonly [Name in keyof Answers]: Shape<Answers[Name]> } = {
  Timer: {
    required: ["namespace", "id", "timerUuid", "shardId", "status", "executeAt", "callbackUrl", "method", "headers", "callbackTimeoutSeconds", "tags", "attempts", "attemptLog", "createdAt", "updatedAt"],
    nested: [["attemptLog", "Attempt", true], ["retryPolicy", "RetryPolicyAnswer", false], ["body", "RawBodyAnswer", false], ["explanation", "Explanation", false], ["onFailure", "HookAnswer", false], ["onSuccess", "HookAnswer", false], ["onRecovery", "HookAnswer", false], ["debounced", "Debounced", false]],
  },
  Attempt: {
    required: ["startedAt", "durationMs"],
    nested: [],
  },
  RetryPolicyAnswer: {
    required: ["maxAttempts", "initialInterval", "backoffMultiplier", "maxInterval"],
    nested: [],
  },
  RawBodyAnswer: {
    required: ["contentType"],
    nested: [],
  },
  Explanation: {
    required: ["state", "shard", "owner", "sentence"],
    nested: [],
  },
  HookAnswer: {
    required: ["url"],
    nested: [],
  },
  Debounced: {
    required: ["creates", "firstAt", "latestAt"],
    nested: [],
  },
  RunPageAnswer: {
    required: ["runs"],
    nested: [["runs", "RunAnswer", true]],
  },
  RunAnswer: {
    required: ["run", "executeAt", "status", "attempts", "attemptLog"],
    nested: [["attemptLog", "Attempt", true]],
  },
  BatchResults: {
    required: ["results"],
    nested: [["results", "BatchResult", true]],
  },
  BatchResult: {
    required: [],
    nested: [["timer", "Timer", false], ["error", "ItemError", false]],
  },
  ItemError: {
    required: ["error", "message", "status", "errors"],
    nested: [["errors", "BadField", true]],
  },
  BadField: {
    required: ["path", "reason"],
    nested: [],
  },
  TimerPage: {
    required: ["timers"],
    nested: [["timers", "Timer", true]],
  },
  Schedule: {
    required: ["namespace", "id", "scheduleUuid", "shardId", "status", "sentence", "nextInstants", "counts", "missed", "triggersWaiting", "backfillsWaiting", "replaysWaiting", "catchUp", "jitter", "pauseAfterFailures", "only", "skip", "onSkipped", "skippedInstants", "callbackUrl", "method", "headers", "callbackTimeoutSeconds", "tags", "createdAt", "updatedAt", "version"],
    nested: [["body", "RawBodyAnswer", false], ["retryPolicy", "RetryPolicyAnswer", false], ["lastOccurrence", "Occurrence", false], ["onFailure", "HookAnswer", false], ["onSuccess", "HookAnswer", false], ["onRecovery", "HookAnswer", false], ["onMissed", "HookAnswer", false], ["onPaused", "HookAnswer", false]],
  },
  Occurrence: {
    required: ["instant", "source", "outcome", "finishedAt", "attempts"],
    nested: [],
  },
  SchedulePage: {
    required: ["schedules"],
    nested: [["schedules", "Schedule", true]],
  },
  Preview: {
    required: ["instants", "sentence", "excluded"],
    nested: [["excluded", "ExcludedInstant", true]],
  },
  ExcludedInstant: {
    required: ["instant", "reason"],
    nested: [],
  },
  OccurrencePage: {
    required: ["occurrences"],
    nested: [["occurrences", "OccurrenceRun", true]],
  },
  OccurrenceRun: {
    required: ["run", "instant", "status", "attempts", "attemptLog", "missed"],
    nested: [["attemptLog", "Attempt", true], ["missed", "MissedRange", true]],
  },
  MissedRange: {
    required: ["reason", "count", "firstAt", "lastAt"],
    nested: [],
  },
  FailureList: {
    required: ["groups", "furtherGroups", "count", "atLeast"],
    nested: [["groups", "FailureGroup", true]],
  },
  FailureGroup: {
    required: ["count", "firstAt", "lastAt", "series", "newest"],
    nested: [["newest", "Failure", true], ["sample", "FailureSample", false]],
  },
  Failure: {
    required: ["failureId", "kind", "id", "executeAt", "failedAt", "destination", "error"],
    nested: [],
  },
  FailureSample: {
    required: [],
    nested: [["attempt", "Attempt", false]],
  },
  FailurePage: {
    required: ["failures"],
    nested: [["failures", "Failure", true]],
  },
  DismissedFailures: {
    required: ["dismissed", "more"],
    nested: [],
  },
  JobAnswer: {
    required: ["job"],
    nested: [["job", "Job", false]],
  },
  Job: {
    required: ["id", "action", "of", "filter", "state", "ratePerSecond", "dryRun", "matched", "changed", "skipped", "errors", "sampleErrors", "createdAt", "updatedAt"],
    nested: [["filter", "JobFilterAnswer", false], ["sampleErrors", "JobFailure", true]],
  },
  JobFilterAnswer: {
    required: ["createdBefore"],
    nested: [],
  },
  JobFailure: {
    required: ["id", "error"],
    nested: [],
  },
  JobList: {
    required: ["jobs"],
    nested: [["jobs", "Job", true]],
  },
  Namespace: {
    required: ["name", "numShards", "history", "retention", "paused", "signed", "answers", "retryPolicy", "createdAt", "updatedAt", "version"],
    nested: [["retryPolicy", "RetryPolicyAnswer", false], ["limits", "FlowLimitsAnswer", false], ["quotas", "QuotasAnswer", false], ["callbackBatch", "CallbackBatchAnswer", false], ["onFailure", "HookAnswer", false], ["onSuccess", "HookAnswer", false], ["onRecovery", "HookAnswer", false], ["onMissed", "HookAnswer", false], ["onPaused", "HookAnswer", false], ["onLate", "HookAnswer", false]],
  },
  FlowLimitsAnswer: {
    required: [],
    nested: [["rate", "FlowRateAnswer", false]],
  },
  FlowRateAnswer: {
    required: ["count", "per"],
    nested: [],
  },
  QuotasAnswer: {
    required: [],
    nested: [],
  },
  CallbackBatchAnswer: {
    required: ["max", "linger"],
    nested: [],
  },
  NamespaceList: {
    required: ["namespaces"],
    nested: [["namespaces", "Namespace", true]],
  },
  RotatedSecret: {
    required: ["name", "secret"],
    nested: [],
  },
  Flow: {
    required: ["namespace", "match", "closeOnRetryAfter", "paused", "version", "createdAt", "updatedAt", "inFlight", "waiting", "complete"],
    nested: [["perKey", "FlowLimitsAnswer", false], ["total", "FlowLimitsAnswer", false], ["callbackBatch", "CallbackBatchAnswer", false]],
  },
  FlowPage: {
    required: ["flows"],
    nested: [["flows", "Flow", true]],
  },
  Calendar: {
    required: ["namespace", "name", "timeZone", "dates", "ranges", "weekdays", "version", "createdAt", "updatedAt"],
    nested: [["ranges", "DateRangeAnswer", true]],
  },
  DateRangeAnswer: {
    required: ["first", "last"],
    nested: [],
  },
  CalendarPage: {
    required: ["calendars"],
    nested: [["calendars", "CalendarSummary", true]],
  },
  CalendarSummary: {
    required: ["namespace", "name", "timeZone", "dateCount", "rangeCount", "weekdays", "version", "createdAt", "updatedAt"],
    nested: [],
  },
  Credential: {
    required: ["namespace", "name", "type", "hosts", "version", "createdAt", "updatedAt"],
    nested: [],
  },
  CredentialPage: {
    required: ["credentials"],
    nested: [["credentials", "Credential", true]],
  },
  TestedCredential: {
    required: ["ok", "steps"],
    nested: [["steps", "TestStep", true]],
  },
  TestStep: {
    required: ["what", "target", "ok", "detail"],
    nested: [],
  },
  SigningKeySet: {
    required: ["keys"],
    nested: [["keys", "SigningKey", true]],
  },
  SigningKey: {
    required: ["kty", "crv", "x", "y", "kid", "use", "alg"],
    nested: [],
  },
  OpenIdConfiguration: {
    required: ["issuer", "jwks_uri", "response_types_supported", "subject_types_supported", "id_token_signing_alg_values_supported"],
    nested: [],
  },
  MonitorPut: {
    required: ["monitor", "created"],
    nested: [["monitor", "Monitor", false]],
  },
  Monitor: {
    required: ["namespace", "id", "grace", "tags", "state", "since", "running", "version", "createdAt", "updatedAt"],
    nested: [["onLate", "HookAnswer", false], ["onRecovery", "HookAnswer", false]],
  },
  MonitorAnswer: {
    required: ["monitor"],
    nested: [["monitor", "Monitor", false]],
  },
  MonitorPage: {
    required: ["monitors"],
    nested: [["monitors", "Monitor", true]],
  },
  MonitorRotated: {
    required: ["monitor", "pingUrl"],
    nested: [["monitor", "Monitor", false]],
  },
  MonitorPeriods: {
    required: ["periods"],
    nested: [["periods", "MonitorPeriod", true]],
  },
  MonitorPeriod: {
    required: ["expectedAt", "deadline", "state"],
    nested: [],
  },
  DestinationList: {
    required: ["destinations", "further"],
    nested: [["destinations", "Destination", true]],
  },
  Destination: {
    required: ["destination", "paused", "inFlight", "limit", "waiting", "attempts", "failures", "breaker", "nodes", "complete"],
    nested: [["nodes", "DestinationOnNode", true]],
  },
  DestinationOnNode: {
    required: ["node", "inFlight", "limit", "waiting", "attempts", "failures", "breaker"],
    nested: [],
  },
  DeadRowPage: {
    required: ["rows"],
    nested: [["rows", "DeadRow", true]],
  },
  DeadRow: {
    required: ["id", "namespace", "timerId", "createdAt", "deadReason"],
    nested: [],
  },
  ReplayedRows: {
    required: ["replayed", "more"],
    nested: [],
  },
  DeletedRows: {
    required: ["deleted", "more"],
    nested: [],
  },
  CreatedKey: {
    required: ["keyId", "role", "name", "namespaces", "tenants", "createdAt", "key"],
    nested: [],
  },
  KeyList: {
    required: ["keys"],
    nested: [["keys", "ShownKey", true]],
  },
  ShownKey: {
    required: ["keyId", "role", "name", "namespaces", "tenants", "createdAt"],
    nested: [],
  },
  AuditPage: {
    required: ["entries"],
    nested: [["entries", "AuditEntry", true]],
  },
  AuditEntry: {
    required: ["at", "action", "keyId", "subject", "source", "address", "node", "details"],
    nested: [],
  },
  Statistics: {
    required: ["from", "to", "resolution", "slots", "failing", "outages"],
    nested: [["slots", "StatisticsSlot", true], ["failing", "FailingDestination", true], ["outages", "Outage", true]],
  },
  StatisticsSlot: {
    required: ["at", "created", "updated", "canceled", "attempts", "completed", "rescheduled", "retried", "failed", "superseded", "expired", "late", "lagP50Ms", "lagP99Ms", "lagMaxMs"],
    nested: [],
  },
  FailingDestination: {
    required: ["namespace", "destination", "path", "failures", "exhausted", "lastError", "lastAt"],
    nested: [],
  },
  Outage: {
    required: ["node", "from", "reason", "late", "lateMaxMs", "createsRefused", "counting"],
    nested: [],
  },
  SubmittedServiceCall: {
    required: ["serviceCallId", "status", "correlationId"],
    nested: [],
  },
  ServiceCallPage: {
    required: ["serviceCalls"],
    nested: [["serviceCalls", "ServiceCallSummary", true]],
  },
  ServiceCallSummary: {
    required: ["serviceCallId", "tenantId", "name", "status", "submittedAt", "dueAt", "tags", "correlationId", "requestSpec", "attempts"],
    nested: [["requestSpec", "RequestLine", false], ["outcome", "Outcome", false]],
  },
  RequestLine: {
    required: ["method", "url"],
    nested: [],
  },
  Outcome: {
    required: [],
    nested: [["responseMeta", "ResponseMeta", false], ["errorMeta", "ErrorMeta", false]],
  },
  ResponseMeta: {
    required: ["status", "headers", "bodySnippet", "truncated", "latencyMs"],
    nested: [],
  },
  ErrorMeta: {
    required: ["kind", "message", "latencyMs"],
    nested: [],
  },
  ServiceCallTrace: {
    required: ["serviceCallId", "correlationId", "entries"],
    nested: [["entries", "TraceEntry", true]],
  },
  TraceEntry: {
    required: ["at", "kind", "name", "id", "detail"],
    nested: [],
  },
  ServiceCall: {
    required: ["serviceCallId", "tenantId", "name", "status", "submittedAt", "dueAt", "tags", "correlationId", "requestSpec", "attempts", "executions"],
    nested: [["requestSpec", "ShownRequest", false], ["executions", "Execution", true], ["outcome", "Outcome", false], ["onFailure", "HookAnswer", false], ["onSuccess", "HookAnswer", false]],
  },
  ShownRequest: {
    required: ["method", "url", "headers"],
    nested: [["retryPolicy", "RetryPolicyAnswer", false]],
  },
  Execution: {
    required: ["number", "executionId", "startedAt", "request"],
    nested: [["request", "ExecutedRequest", false], ["response", "ExecutedResponse", false]],
  },
  ExecutedRequest: {
    required: ["method", "url", "headers"],
    nested: [],
  },
  ExecutedResponse: {
    required: ["status", "headers", "body"],
    nested: [],
  },
  RotatedTenantSecret: {
    required: ["tenantId", "secret"],
    nested: [],
  },
  Cluster: {
    required: ["totalShards", "dispatching", "nodes", "shards"],
    nested: [["nodes", "Node", true], ["shards", "Shard", true]],
  },
  Node: {
    required: ["node", "incarnation", "address", "alive", "self", "shards", "leaving", "skewed", "version", "dispatching", "agent", "windowTimers", "lagMs", "sharesName", "secretDiffers", "largestShardBytes", "pausedSince", "pausedReason", "vitals"],
    nested: [["vitals", "Vitals", false]],
  },
  Vitals: {
    required: ["uptimeS", "cpuCores", "memoryBytes", "loopLagMs", "readP50Ms", "readP99Ms", "commitP50Ms", "commitP99Ms", "inFlight", "callbackConnections", "clientConnections", "storeError", "storeErrorAt"],
    nested: [],
  },
  Shard: {
    required: ["shardId", "version", "owner", "ownedHere"],
    nested: [],
  },
  ShardOwners: {
    required: ["totalShards", "nodes", "owners"],
    nested: [["nodes", "OwnerNode", true]],
  },
  OwnerNode: {
    required: ["apiUrl", "alive", "leaving", "skewed"],
    nested: [],
  },
};
