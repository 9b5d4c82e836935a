package tocsin

import (
	"context"
	"encoding/json"

	"tocsin.dev/go/internal/rules"
)

// Jobs are one change each of many timers or schedules, which the server makes row by row.
type Jobs struct{ part }

// Create creates a job, which goes on without the client. An empty Filter needs All. ShiftBy is a duration such as 2h or -2h.
// ErrJobRunning: another job may change the same rows.
func (j *Jobs) Create(ctx context.Context, job CreateJob) (*Job, error) {
	if job.IdempotencyKey == "" {
		job.IdempotencyKey = rules.NewUUID4().String()
	}
	return j.ask(ctx, "createJob", job)
}

// Get returns how far the job is, or how it ended. ErrJobNotFound: there is none, or it ended more than 30 days ago.
func (j *Jobs) Get(ctx context.Context, jobID string) (*Job, error) {
	return j.ask(ctx, "getJob", JobName{JobID: jobID})
}

// List returns the jobs that the key may see, newest first: all of them, or those of the namespace or tenant that is named and
// of all together.
func (j *Jobs) List(ctx context.Context, wanted ListJobs) ([]Job, error) {
	found, err := ask[JobList](ctx, &j.part, &call{operation: "listJobs", body: constant(wanted)})
	if err != nil {
		return nil, err
	}
	return found.Jobs, nil
}

// Pause stops the job until Resume. ErrJobEnded: it has ended.
func (j *Jobs) Pause(ctx context.Context, jobID string) (*Job, error) {
	return j.ask(ctx, "pauseJob", JobName{JobID: jobID})
}

// Resume goes on with a paused job. ErrJobEnded: it has ended.
func (j *Jobs) Resume(ctx context.Context, jobID string) (*Job, error) {
	return j.ask(ctx, "resumeJob", JobName{JobID: jobID})
}

// Cancel ends the job; what it has changed stays changed. ErrJobEnded: it has ended, perhaps by an earlier try.
func (j *Jobs) Cancel(ctx context.Context, jobID string) (*Job, error) {
	return j.ask(ctx, "cancelJob", JobName{JobID: jobID})
}

// SetRate changes how many rows a second the job changes at most. ErrJobEnded: it has ended.
func (j *Jobs) SetRate(ctx context.Context, rate SetJobRate) (*Job, error) {
	return j.ask(ctx, "setJobRate", rate)
}

func (j *Jobs) ask(ctx context.Context, operation string, body json.Marshaler) (*Job, error) {
	answer, err := ask[JobAnswer](ctx, &j.part, &call{operation: operation, body: constant(body)})
	if err != nil {
		return nil, err
	}
	return &answer.Job, nil
}
