/** The client. */

import { Calendars } from "./calendars.js";
import { Calls } from "./calls.js";
import { type ClientOptions, Session } from "./core/session.js";
import { Destinations } from "./destinations.js";
import { Failures } from "./failures.js";
import { Flows } from "./flows.js";
import { Jobs } from "./jobs.js";
import { Audit, Keys } from "./keys.js";
import { Monitors } from "./monitors.js";
import { ClusterView, Namespaces } from "./namespaces.js";
import { Schedules } from "./schedules.js";
import { Timers } from "./timers.js";

/** Speaks to a Tocsin server, or to any node of a cluster. Make one for the whole program. */
export class Client {
  readonly timers: Timers;
  readonly schedules: Schedules;
  readonly failures: Failures;
  readonly jobs: Jobs;
  readonly namespaces: Namespaces;
  readonly flows: Flows;
  readonly calendars: Calendars;
  readonly monitors: Monitors;
  readonly destinations: Destinations;
  readonly keys: Keys;
  readonly audit: Audit;
  readonly cluster: ClusterView;
  private readonly session: Session;

  /** InvalidArgument: the URL, the key or another option is none. */
  constructor(url: string, options: ClientOptions = {}) {
    this.session = new Session(url, options);
    this.timers = new Timers(this.session);
    this.schedules = new Schedules(this.session);
    this.failures = new Failures(this.session);
    this.jobs = new Jobs(this.session);
    this.namespaces = new Namespaces(this.session);
    this.flows = new Flows(this.session);
    this.calendars = new Calendars(this.session);
    this.monitors = new Monitors(this.session);
    this.destinations = new Destinations(this.session);
    this.keys = new Keys(this.session);
    this.audit = new Audit(this.session);
    this.cluster = new ClusterView(this.session);
  }

  /** The service calls of this tenant. */
  calls(tenantId: string): Calls {
    return new Calls(this.session, tenantId);
  }
}
