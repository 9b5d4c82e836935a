package dev.tocsin.client;

import dev.tocsin.client.error.JobEndedException;
import dev.tocsin.client.error.JobNotFoundException;
import dev.tocsin.client.error.JobRunningException;
import dev.tocsin.client.model.CreateJob;
import dev.tocsin.client.model.Job;
import dev.tocsin.client.model.ListJobs;
import dev.tocsin.client.model.SetJobRate;
import java.util.List;

/** Jobs: one change of many timers or schedules, that the server makes row by row. */
public final class Jobs {
    private final AsyncJobs async;

    Jobs(AsyncJobs async) {
        this.async = async;
    }

    /**
     * Creates a job, which goes on without the client. An empty filter needs {@code all}.
     *
     * @param job what it does, with which rows
     * @return the job
     * @throws JobRunningException if another one may change the same rows
     */
    public Job create(CreateJob job) {
        return Run.join(async.create(job));
    }

    /**
     * Reads how far a job is, or how it ended.
     *
     * @param jobId its id
     * @return the job
     * @throws JobNotFoundException if there is none, or it ended more than 30 days ago
     */
    public Job get(String jobId) {
        return Run.join(async.get(jobId));
    }

    /**
     * Lists the jobs that the key may see, newest first.
     *
     * @param wanted of which namespace or tenant
     * @return the jobs
     */
    public List<Job> list(ListJobs wanted) {
        return Run.join(async.list(wanted));
    }

    /**
     * Stops a job until it is resumed.
     *
     * @param jobId its id
     * @return the job
     * @throws JobEndedException if it has ended
     */
    public Job pause(String jobId) {
        return Run.join(async.pause(jobId));
    }

    /**
     * Goes on with a paused job.
     *
     * @param jobId its id
     * @return the job
     * @throws JobEndedException if it has ended
     */
    public Job resume(String jobId) {
        return Run.join(async.resume(jobId));
    }

    /**
     * Ends a job; what it has changed stays changed.
     *
     * @param jobId its id
     * @return the job
     * @throws JobEndedException if it has ended
     */
    public Job cancel(String jobId) {
        return Run.join(async.cancel(jobId));
    }

    /**
     * Changes how many rows a second a job changes at most.
     *
     * @param rate which job, and its new rate
     * @return the job
     * @throws JobEndedException if it has ended
     */
    public Job setRate(SetJobRate rate) {
        return Run.join(async.setRate(rate));
    }
}
