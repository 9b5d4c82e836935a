"""Jobs that are always there, running."""

from __future__ import annotations

import msgspec

from tocsin.model.errors import JobNotFound
from tocsin.model.job import Job, JobAction, JobKind, JobState, RowFilter

_JOB = Job("", "default", JobKind.TIMERS, JobAction.CANCEL, RowFilter(2_000_000, ("t",)), 1, 1, JobState.RUNNING)


class FakeJobs:
    """What handlers call of `Jobs`."""

    async def create(self, job: Job) -> Job:
        return msgspec.structs.replace(job, state=JobState.RUNNING)

    async def get(self, job_id: str) -> Job:
        if job_id == "none":
            raise JobNotFound("there is no job 'none'")
        return msgspec.structs.replace(_JOB, id=job_id)

    async def list(self) -> list[Job]:
        return [_JOB]

    async def deletion_of(self, namespace: str) -> Job | None:
        return None

    async def repeated(self, job: Job) -> Job | None:
        return None

    async def set_rate(self, job_id: str, rate_per_second: int) -> Job:
        return msgspec.structs.replace(await self.get(job_id), rate_per_second=rate_per_second)

    pause = resume = cancel = get
