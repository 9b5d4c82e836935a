/** Monitors. */

import { bodyOf } from "./core/bodies.js";
import { ask, remove } from "./core/flows.js";
import type { CallOptions, Session } from "./core/session.js";
import {
  encodeDeleteMonitor,
  encodeListMonitors,
  encodeMonitorHistory,
  encodeMonitorName,
  encodePingMonitor,
  encodePutMonitor,
} from "./generated/codecs.js";
import type {
  DeleteMonitor,
  ListMonitors,
  Monitor,
  MonitorHistory,
  MonitorName,
  MonitorPeriod,
  MonitorPut,
  MonitorRotated,
  PingMonitor,
  PutMonitor,
} from "./generated/models.js";
import { Pages } from "./pages.js";

/** Characters of an error that `run` reports. */
const ERROR_CHARS_MAX = 2000;
/** How long a server that is not reached delays a job, before it and after it. */
const REPORT_TIMEOUT_MS = 5000;

/** They know when jobs should report, and notify when one does not. */
export class Monitors {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /**
   * Creates the monitor, or replaces its definition; give one of `cron`, `every` and `schedule`. The answer that creates it has its
   * `pingUrl`, which is never shown again. A lost answer is not followed by a retry, whose answer would have no `pingUrl`:
   * TransportError with `maybeDone`; `rotate` makes a new one. VersionConflict: it has not the expected version; 0: there must
   * be none.
   */
  async put(monitor: PutMonitor, options?: CallOptions): Promise<MonitorPut> {
    const sent = encodePutMonitor(monitor);
    // That of a schedule has no URL to lose.
    const safe = monitor.dryRun === true || (monitor.schedule !== undefined && monitor.expectedVersion === undefined);
    return ask(this.session, "MonitorPut", "putMonitor", sent, options, { unsafe: !safe });
  }

  /** The monitor. MonitorNotFound: there is none. */
  async get(name: MonitorName, options?: CallOptions): Promise<Monitor> {
    return (await ask(this.session, "MonitorAnswer", "getMonitor", encodeMonitorName(name), options)).monitor;
  }

  /** The monitors that match; `limit` is the size of a page. */
  list(query: Omit<ListMonitors, "cursor">, options?: CallOptions): Pages<Monitor> {
    return new Pages(async (cursor) => {
      const body = encodeListMonitors({ ...query, cursor });
      const page = await ask(this.session, "MonitorPage", "listMonitors", body, options);
      return { elements: page.monitors, next: page.nextCursor };
    });
  }

  /** Expects nothing until it is resumed. MonitorNotFound: there is none. */
  async pause(name: MonitorName, options?: CallOptions): Promise<Monitor> {
    return (await ask(this.session, "MonitorAnswer", "pauseMonitor", encodeMonitorName(name), options)).monitor;
  }

  /** Expects reports again, from the next instant on. MonitorNotFound: there is none. */
  async resume(name: MonitorName, options?: CallOptions): Promise<Monitor> {
    return (await ask(this.session, "MonitorAnswer", "resumeMonitor", encodeMonitorName(name), options)).monitor;
  }

  /** Replaces the ping URL: the former one is refused from the answer on. MonitorNotFound: there is none. */
  async rotate(name: MonitorName, options?: CallOptions): Promise<MonitorRotated> {
    return ask(this.session, "MonitorRotated", "rotateMonitor", encodeMonitorName(name), options);
  }

  /** Deletes the monitor with its history. MonitorNotFound: there is none. VersionConflict: it has not the expected version. */
  async delete(monitor: DeleteMonitor, options?: CallOptions): Promise<void> {
    const { namespace, id } = monitor;
    await remove(
      this.session,
      { operation: "deleteMonitor", body: bodyOf(encodeDeleteMonitor(monitor)) },
      { operation: "getMonitor", body: bodyOf(encodeMonitorName({ namespace, id })) },
      () => false,
      this.session.limits(options),
    );
  }

  /** Reports that the job has begun, succeeded or failed. MonitorNotFound: there is none. */
  async ping(ping: PingMonitor, options?: CallOptions): Promise<Monitor> {
    return (await ask(this.session, "MonitorAnswer", "pingMonitor", encodePingMonitor(ping), options)).monitor;
  }

  /** The monitor's periods, newest first; `limit` is the size of a page. */
  history(query: Omit<MonitorHistory, "cursor">, options?: CallOptions): Pages<MonitorPeriod> {
    return new Pages(async (cursor) => {
      const body = encodeMonitorHistory({ ...query, cursor });
      const page = await ask(this.session, "MonitorPeriods", "monitorHistory", body, options);
      return { elements: page.periods, next: page.nextCursor };
    });
  }

  /**
   * Calls the job and reports its beginning and its end; returns what the job does, and throws what it throws. A report that
   * can't be sent within 5 s is logged, and changes nothing else. A `signal` of the options does not end reports: what became
   * of a job that was aborted is reported, too.
   */
  async run<T>(name: MonitorName, job: () => Promise<T> | T, options?: CallOptions): Promise<T> {
    const { namespace, id } = name;
    await this.report({ namespace, id, event: "start" }, options);
    let result: T;
    try {
      result = await job();
    } catch (error) {
      await this.report({ namespace, id, event: "fail", body: textOf(error) }, options);
      throw error;
    }
    await this.report({ namespace, id, event: "success" }, options);
    return result;
  }

  private async report(ping: PingMonitor, options?: CallOptions): Promise<void> {
    try {
      const timeoutMs = Math.min(this.session.limits(options).timeoutMs, REPORT_TIMEOUT_MS);
      const limited = { ...options, timeoutMs, signal: undefined };
      await this.ping(ping, limited);
    } catch (error) {
      this.session.warn(`report ${ping.event} to monitor ${ping.namespace}/${ping.id} not delivered: ${String(error)}`);
    }
  }
}

/** What is reported of an error; through bytes, since no request can contain half of a surrogate pair. */
function textOf(error: unknown): string {
  return new TextDecoder().decode(new TextEncoder().encode(String(error).slice(0, ERROR_CHARS_MAX)));
}
