"""Jobs."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

from tocsin_client._async.part import Part
from tocsin_client._core.ids import new_key
from tocsin_client._generated.models import (
    CreateJob,
    Job,
    JobAction,
    JobAnswer,
    JobFilter,
    JobKind,
    JobList,
    JobName,
    ListJobs,
    SetJobRate,
)
from tocsin_client._values import UNSET, JsonValue, Unset


class AsyncJobs(Part):
    """Jobs: one change of many timers or schedules, that the server makes row by row."""

    async def create(
        self,
        namespace: str | Unset,
        action: JobAction,
        of: JobKind,
        *,
        tenant: str | Unset = UNSET,
        filter: JobFilter | Mapping[str, Any] | Unset = UNSET,
        all: bool | Unset = UNSET,
        shift_by: str | Unset = UNSET,
        url: str | Unset = UNSET,
        rate_per_second: int | Unset = UNSET,
        dry_run: bool | Unset = UNSET,
        match_max: int | Unset = UNSET,
        idempotency_key: str | Unset = UNSET,
    ) -> Job:
        """Creates a job, which goes on without the client. An empty `filter` needs `all`. `shift_by` is a duration such as
        `2h` or `-2h`. With a `tenant`, whose failed service calls are replayed, `namespace` is UNSET. JobRunning: another job
        may change the same rows."""
        wanted = CreateJob(
            namespace=namespace,
            tenant=tenant,
            action=action,
            of=of,
            filter=filter,
            all=all,
            shift_by=shift_by,
            url=url,
            rate_per_second=rate_per_second,
            dry_run=dry_run,
            match_max=match_max,
            idempotency_key=new_key() if idempotency_key is UNSET else idempotency_key,
        )
        return await self._job("createJob", wanted.to_json())

    async def get(self, job_id: str) -> Job:
        """How far the job is, or how it ended. JobNotFound: there is none, or it ended more than 30 days ago."""
        return await self._job("getJob", JobName(job_id=job_id).to_json())

    async def list(self, namespace: str | Unset = UNSET, *, tenant: str | Unset = UNSET) -> builtins.list[Job]:
        """The jobs that the key may see, newest first: all of them, or those of a namespace or tenant and of all together."""
        wanted = ListJobs(namespace=namespace, tenant=tenant)
        return (await self._run(self._ask("listJobs", JobList.from_json, wanted.to_json()))).jobs

    async def pause(self, job_id: str) -> Job:
        """Stops the job until `resume`. JobEnded: it has ended."""
        return await self._job("pauseJob", JobName(job_id=job_id).to_json())

    async def resume(self, job_id: str) -> Job:
        """Goes on with a paused job. JobEnded: it has ended."""
        return await self._job("resumeJob", JobName(job_id=job_id).to_json())

    async def cancel(self, job_id: str) -> Job:
        """Ends the job; what it has changed stays changed. After a lost answer: JobEnded, if the job was canceled by it."""
        return await self._job("cancelJob", JobName(job_id=job_id).to_json())

    async def set_rate(self, job_id: str, rate_per_second: int) -> Job:
        """Changes how many rows a second the job changes at most. JobEnded: it has ended."""
        wanted = SetJobRate(job_id=job_id, rate_per_second=rate_per_second)
        return await self._job("setJobRate", wanted.to_json())

    async def _job(self, operation: str, body: Mapping[str, JsonValue]) -> Job:
        return (await self._run(self._ask(operation, JobAnswer.from_json, body))).job
