"""Service calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin_client._async.pages import AsyncPages
from tocsin_client._async.part import Part
from tocsin_client._async.runner import Runner
from tocsin_client._core import flows
from tocsin_client._core.steps import Steps
from tocsin_client._generated.models import (
    CallHook,
    RequestSpec,
    RetryPolicy,
    RotatedTenantSecret,
    RotateTenantSecret,
    ServiceCall,
    ServiceCallMethod,
    ServiceCallPage,
    ServiceCallStatus,
    ServiceCallSummary,
    ServiceCallTrace,
    SubmitServiceCall,
    SubmittedServiceCall,
)
from tocsin_client._values import UNSET, Duration, Instant, JsonValue, Unset, instant_text


class AsyncCalls(Part):
    """The service calls of a tenant: requests that the server sends, and whose answers it keeps."""

    def __init__(self, runner: Runner, tenant_id: str) -> None:
        super().__init__(runner)
        self._tenant_id = tenant_id

    async def submit(
        self,
        name: str,
        method: ServiceCallMethod,
        url: str,
        *,
        headers: Mapping[str, str] | Unset = UNSET,
        body: JsonValue | Unset = UNSET,
        retry_policy: RetryPolicy | Mapping[str, Any] | Unset = UNSET,
        credential: str | Unset = UNSET,
        due_at: Instant | Unset = UNSET,
        delay: Duration | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        flow_key: str | Unset = UNSET,
        on_failure: CallHook | Mapping[str, Any] | Unset = UNSET,
        on_success: CallHook | Mapping[str, Any] | Unset = UNSET,
        service_call_id: str | Unset = UNSET,
        idempotency_key: str | Unset = UNSET,
    ) -> SubmittedServiceCall:
        """Submits a call. Its id, a UUID of version 7, is made here unless you give one, so that a lost answer never
        submits it twice."""
        spec = RequestSpec(
            method=method, url=url, headers=headers, body=body, retry_policy=retry_policy, credential=credential
        )
        submission = SubmitServiceCall(
            name=name,
            request_spec=spec,
            due_at=due_at,
            delay=delay,
            tags=tags,
            flow_key=flow_key,
            on_failure=on_failure,
            on_success=on_success,
            service_call_id=service_call_id,
            idempotency_key=idempotency_key,
        )
        return await self._run(flows.submit_call(self._session, self._tenant_id, submission, self._options))

    async def get(self, service_call_id: str) -> ServiceCall:
        """The call with its executions. ServiceCallNotFound: there is none."""
        return await self._run(self._ask("getServiceCall", ServiceCall.from_json, path=self._path(service_call_id)))

    async def delete(self, service_call_id: str) -> None:
        """Deletes a call that has not started. ServiceCallNotScheduled: it has."""
        await self._run(flows.delete_call(self._session, self._path(service_call_id), self._options))

    async def tag(self, service_call_id: str, tag: str) -> None:
        """Adds a tag."""
        path = {**self._path(service_call_id), "tag": tag}
        await self._run(flows.order(self._session, "tagServiceCall", path=path, options=self._options))

    async def untag(self, service_call_id: str, tag: str) -> None:
        """Removes a tag."""
        path = {**self._path(service_call_id), "tag": tag}
        await self._run(flows.order(self._session, "untagServiceCall", path=path, options=self._options))

    async def retry(self, service_call_id: str) -> None:
        """Makes another attempt of a call that has failed, under the same webhook-id. ServiceCallNotFailed: it has not. A
        lost answer is not followed by a retry: TransportError with `maybe_done`."""
        path = self._path(service_call_id)
        await self._run(flows.order(self._session, "retryServiceCall", path=path, options=self._options, safe=False))

    async def trace(self, service_call_id: str) -> ServiceCallTrace:
        """What happened to the call, message by message."""
        return await self._run(
            self._ask("traceServiceCall", ServiceCallTrace.from_json, path=self._path(service_call_id))
        )

    async def wait(self, service_call_id: str, *, timeout: Duration | None = None) -> ServiceCall:
        """Returns the call once it has succeeded or failed. WaitTimeout: that took longer than so many seconds."""
        return await self._run(flows.wait_for_call(self._session, self._path(service_call_id), timeout, self._options))

    async def rotate_secret(
        self,
        *,
        secret: str | Unset = UNSET,
        grace: Duration | Unset = UNSET,
        force: bool | Unset = UNSET,
    ) -> RotatedTenantSecret:
        """Signs the tenant's calls with a new secret, and during `grace` with the former one, too. Only this answer shows the
        secret. It needs a key of role admin for the tenant. A lost answer is not followed by a retry: TransportError with
        `maybe_done`."""
        rotation = RotateTenantSecret(tenant_id=self._tenant_id, secret=secret, grace=grace, force=force)
        return await self._run(
            self._ask("rotateTenantSecret", RotatedTenantSecret.from_json, rotation.to_json(), safe=False)
        )

    def list(
        self,
        *,
        status: ServiceCallStatus | Sequence[ServiceCallStatus] | None = None,
        tag: str | None = None,
        name: str | None = None,
        correlation_id: str | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
    ) -> AsyncPages[ServiceCallSummary]:
        """All calls that match, newest first; `limit` is the size of a page."""
        filters: dict[str, str | Sequence[str] | None] = {
            "status": status,
            "tag": tag,
            "name": name,
            "correlationId": correlation_id,
            "from": None if from_ is None else instant_text("from_", from_),
            "to": None if to is None else instant_text("to", to),
            "limit": None if limit is None else str(limit),
        }
        query = {parameter: value for parameter, value in filters.items() if value is not None}

        def fetch(cursor: str | None) -> Steps[tuple[list[ServiceCallSummary], str | None]]:
            page = yield from self._ask(
                "listServiceCalls",
                ServiceCallPage.from_json,
                path={"tenantId": self._tenant_id},
                query=query if cursor is None else {**query, "cursor": cursor},
            )
            return page.service_calls, page.next_cursor

        return AsyncPages(self._runner, fetch)

    def _path(self, service_call_id: str) -> dict[str, str]:
        return {"tenantId": self._tenant_id, "serviceCallId": service_call_id}
