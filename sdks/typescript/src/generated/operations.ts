// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
/** The operations. */

/** How an operation is requested; `path` has a name in braces for each parameter. */
export interface Operation {
  readonly method: string;
  readonly path: string;
}

export const OPERATIONS = {
  createTimer: { method: "POST", path: "/api/v1/timers/create" },
  getTimer: { method: "POST", path: "/api/v1/timers/get" },
  explainTimer: { method: "POST", path: "/api/v1/timers/explain" },
  timerHistory: { method: "POST", path: "/api/v1/timers/history" },
  updateTimer: { method: "POST", path: "/api/v1/timers/update" },
  deleteTimer: { method: "POST", path: "/api/v1/timers/delete" },
  replayTimers: { method: "POST", path: "/api/v1/timers/replay" },
  listTimers: { method: "POST", path: "/api/v1/timers/list" },
  batchCreateTimers: { method: "POST", path: "/api/v1/timers/batch/create" },
  createSchedule: { method: "POST", path: "/api/v1/schedules/create" },
  getSchedule: { method: "POST", path: "/api/v1/schedules/get" },
  updateSchedule: { method: "POST", path: "/api/v1/schedules/update" },
  listSchedules: { method: "POST", path: "/api/v1/schedules/list" },
  pauseSchedule: { method: "POST", path: "/api/v1/schedules/pause" },
  resumeSchedule: { method: "POST", path: "/api/v1/schedules/resume" },
  triggerSchedule: { method: "POST", path: "/api/v1/schedules/trigger" },
  backfillSchedule: { method: "POST", path: "/api/v1/schedules/backfill" },
  replaySchedule: { method: "POST", path: "/api/v1/schedules/replay" },
  previewSchedule: { method: "POST", path: "/api/v1/schedules/preview" },
  scheduleHistory: { method: "POST", path: "/api/v1/schedules/history" },
  deleteSchedule: { method: "POST", path: "/api/v1/schedules/delete" },
  listFailures: { method: "POST", path: "/api/v1/failures/list" },
  listFailureMembers: { method: "POST", path: "/api/v1/failures/members" },
  dismissFailures: { method: "POST", path: "/api/v1/failures/dismiss" },
  createJob: { method: "POST", path: "/api/v1/jobs/create" },
  getJob: { method: "POST", path: "/api/v1/jobs/get" },
  listJobs: { method: "POST", path: "/api/v1/jobs/list" },
  pauseJob: { method: "POST", path: "/api/v1/jobs/pause" },
  resumeJob: { method: "POST", path: "/api/v1/jobs/resume" },
  cancelJob: { method: "POST", path: "/api/v1/jobs/cancel" },
  setJobRate: { method: "POST", path: "/api/v1/jobs/setRate" },
  createNamespace: { method: "POST", path: "/api/v1/namespaces/create" },
  getNamespace: { method: "POST", path: "/api/v1/namespaces/get" },
  listNamespaces: { method: "POST", path: "/api/v1/namespaces/list" },
  updateNamespace: { method: "POST", path: "/api/v1/namespaces/update" },
  deleteNamespace: { method: "POST", path: "/api/v1/namespaces/delete" },
  rotateNamespaceSecret: { method: "POST", path: "/api/v1/namespaces/rotateSecret" },
  createKey: { method: "POST", path: "/api/v1/keys/create" },
  listKeys: { method: "POST", path: "/api/v1/keys/list" },
  revokeKey: { method: "POST", path: "/api/v1/keys/revoke" },
  listAudit: { method: "POST", path: "/api/v1/audit/list" },
  getStatistics: { method: "POST", path: "/api/v1/statistics/get" },
  submitServiceCall: { method: "POST", path: "/api/v1/tenants/{tenantId}/service-calls" },
  listServiceCalls: { method: "GET", path: "/api/v1/tenants/{tenantId}/service-calls" },
  tagServiceCall: { method: "PUT", path: "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/tags/{tag}" },
  untagServiceCall: { method: "DELETE", path: "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/tags/{tag}" },
  traceServiceCall: { method: "GET", path: "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/trace" },
  getServiceCall: { method: "GET", path: "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}" },
  deleteServiceCall: { method: "DELETE", path: "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}" },
  retryServiceCall: { method: "POST", path: "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/retry" },
  rotateTenantSecret: { method: "POST", path: "/api/v1/tenants/rotateSecret" },
  getCluster: { method: "GET", path: "/api/v1/cluster" },
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof OPERATIONS;
