package dev.tocsin.client;

import dev.tocsin.client.error.JobEndedException;
import dev.tocsin.client.error.JobNotFoundException;
import dev.tocsin.client.error.JobRunningException;
import dev.tocsin.client.model.CreateJob;
import dev.tocsin.client.model.Job;
import dev.tocsin.client.model.JobAnswer;
import dev.tocsin.client.model.JobList;
import dev.tocsin.client.model.JobName;
import dev.tocsin.client.model.ListJobs;
import dev.tocsin.client.model.SetJobRate;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;

/** Jobs: one change of many timers or schedules, that the server makes; for programs that do not block. */
public final class AsyncJobs {
    private final Steps steps;

    AsyncJobs(Steps steps) {
        this.steps = steps;
    }

    /**
     * Creates a job, which goes on without the client. An empty filter needs {@code all}.
     *
     * @param job what it does, with which rows
     * @return the job; fails with {@link JobRunningException} if another one may change the same rows
     */
    public CompletableFuture<Job> create(CreateJob job) {
        CreateJob keyed = job.idempotencyKey().isPresent() ? job : job.idempotencyKey(UUID.randomUUID().toString());
        return ask(Operation.CREATE_JOB, keyed.toJson());
    }

    /**
     * Reads how far a job is, or how it ended.
     *
     * @param jobId its id
     * @return the job; fails with {@link JobNotFoundException} if there is none, or it ended more than 30 days ago
     */
    public CompletableFuture<Job> get(String jobId) {
        return ask(Operation.GET_JOB, JobName.of(jobId).toJson());
    }

    /**
     * Lists the jobs that the key may see, newest first.
     *
     * @param wanted of which namespace or tenant
     * @return the jobs
     */
    public CompletableFuture<List<Job>> list(ListJobs wanted) {
        return steps.ask(Call.of(Operation.LIST_JOBS, wanted.toJson()), JobList::fromJson).thenApply(JobList::jobs);
    }

    /**
     * Stops a job until it is resumed.
     *
     * @param jobId its id
     * @return the job; fails with {@link JobEndedException} if it has ended
     */
    public CompletableFuture<Job> pause(String jobId) {
        return ask(Operation.PAUSE_JOB, JobName.of(jobId).toJson());
    }

    /**
     * Goes on with a paused job.
     *
     * @param jobId its id
     * @return the job; fails with {@link JobEndedException} if it has ended
     */
    public CompletableFuture<Job> resume(String jobId) {
        return ask(Operation.RESUME_JOB, JobName.of(jobId).toJson());
    }

    /**
     * Ends a job; what it has changed stays changed.
     *
     * @param jobId its id
     * @return the job; fails with {@link JobEndedException} if it has ended
     */
    public CompletableFuture<Job> cancel(String jobId) {
        return ask(Operation.CANCEL_JOB, JobName.of(jobId).toJson());
    }

    /**
     * Changes how many rows a second a job changes at most.
     *
     * @param rate which job, and its new rate
     * @return the job; fails with {@link JobEndedException} if it has ended
     */
    public CompletableFuture<Job> setRate(SetJobRate rate) {
        return ask(Operation.SET_JOB_RATE, rate.toJson());
    }

    private CompletableFuture<Job> ask(Operation operation, Json body) {
        return steps.ask(Call.of(operation, body), JobAnswer::fromJson).thenApply(JobAnswer::job);
    }
}
