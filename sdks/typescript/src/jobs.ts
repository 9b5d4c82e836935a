/** Jobs. */

import { ask } from "./core/flows.js";
import type { CallOptions, Session } from "./core/session.js";
import { encodeCreateJob, encodeJobName, encodeListJobs, encodeSetJobRate } from "./generated/codecs.js";
import type { CreateJob, Job, JobName, ListJobs, SetJobRate } from "./generated/models.js";

/** Jobs: one change of many timers or schedules, that the server makes row by row. */
export class Jobs {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /**
   * Creates a job, which goes on without the client. An empty `filter` needs `all`. `shiftBy` is a duration such as `2h` or
   * `-2h`. JobRunning: another job may change the same rows.
   */
  async create(job: CreateJob, options?: CallOptions): Promise<Job> {
    const sent = encodeCreateJob({ ...job, idempotencyKey: job.idempotencyKey ?? crypto.randomUUID() });
    return (await ask(this.session, "JobAnswer", "createJob", sent, options)).job;
  }

  /** How far the job is, or how it ended. JobNotFound: there is none, or it ended more than 30 days ago. */
  async get(name: JobName, options?: CallOptions): Promise<Job> {
    return (await ask(this.session, "JobAnswer", "getJob", encodeJobName(name), options)).job;
  }

  /** The jobs that the key may see, newest first: all, or those of a namespace or tenant and of all together. */
  async list(wanted: ListJobs = {}, options?: CallOptions): Promise<Job[]> {
    return (await ask(this.session, "JobList", "listJobs", encodeListJobs(wanted), options)).jobs;
  }

  /** Stops the job until `resume`. JobEnded: it has ended. */
  async pause(name: JobName, options?: CallOptions): Promise<Job> {
    return (await ask(this.session, "JobAnswer", "pauseJob", encodeJobName(name), options)).job;
  }

  /** Goes on with a paused job. JobEnded: it has ended. */
  async resume(name: JobName, options?: CallOptions): Promise<Job> {
    return (await ask(this.session, "JobAnswer", "resumeJob", encodeJobName(name), options)).job;
  }

  /** Ends the job; what it has changed stays changed. JobEnded: it has ended, perhaps by an earlier try. */
  async cancel(name: JobName, options?: CallOptions): Promise<Job> {
    return (await ask(this.session, "JobAnswer", "cancelJob", encodeJobName(name), options)).job;
  }

  /** Changes how many rows a second the job changes at most. JobEnded: it has ended. */
  async setRate(rate: SetJobRate, options?: CallOptions): Promise<Job> {
    return (await ask(this.session, "JobAnswer", "setJobRate", encodeSetJobRate(rate), options)).job;
  }
}
