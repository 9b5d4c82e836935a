"""The OpenAPI description is true: it is valid, its examples work, and the server behaves as it says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import schemathesis
from fake_timers import FakeTimerService
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schemathesis.specs.openapi.checks import positive_data_acceptance, use_after_free

from conftest import Keys, Served, make_api
from tocsin.agent.limits import AgentLimits
from tocsin.api.call import ApiLimits
from tocsin.api.openapi import describe
from tocsin.api.operations import OPERATIONS
from tocsin.model.access import ApiKey, Role
from tocsin.model.validation import InputLimits

BEGIN = datetime.now(UTC)
schemathesis.openapi.format(
    "date-time",
    st.integers(1, 10**9).map(lambda seconds: (BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")),
)
schemathesis.openapi.format(
    "uri", st.sampled_from(["https://a.example/", "http://a.example:8080/x?y=%20", "http://10.0.0.1/"])
)


@pytest.fixture(scope="module")
def open_server(serve: Callable[..., Served]) -> Served:
    return serve()


# Made here, not fetched, so that each operation is a test of its own; another test sees that the server says the same.
DESCRIPTION = json.loads(describe(InputLimits(), ApiLimits(), AgentLimits(), metrics_open=True, keys_required=False))
schema = schemathesis.openapi.from_dict(DESCRIPTION)


@schema.parametrize()
@settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_server_behaves_as_described(case: schemathesis.Case, open_server: Served) -> None:
    # Left out: what a schema can't say (an executeAt must lie within so many years of now) makes valid-looking data
    # invalid; and a deleted timer stays visible on purpose.
    case.call_and_validate(base_url=open_server.url, excluded_checks=[positive_data_acceptance, use_after_free])


def resolve(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that stands alone, with the document's components beside it."""
    return {**schema, "components": document["components"]}


def test_server_gives_out_this_description(open_server: Served) -> None:
    for path in ("/openapi.json", "/api/v1/openapi.json"):
        assert open_server.client.get(path).json() == DESCRIPTION


def test_examples_are_accepted_and_answered_as_described(open_server: Served) -> None:
    open_server.service.clear()
    open_server.agent.clear()
    document = open_server.client.get("/openapi.json").json()
    admin = open_server.keys.add("tk_examples", Role.ADMIN)
    asyncio.run(open_server.keys.stored.put_api_key(ApiKey("1f0c9a7be2d4", "", Role.READ)))
    called = 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            if "example" in content:
                Draft202012Validator(resolve(document, content["schema"])).validate(content["example"])
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
            example = content.get("example", {} if content else None)
            answer = open_server.client.request(method, path, json=example, headers=admin)
            described = operation["responses"][str(answer.status_code)]
            assert answer.is_success, (path, answer.text)
            for media_type, answered in described.get("content", {}).items():
                assert answer.headers["content-type"].startswith(media_type)
                if media_type == "application/json":
                    Draft202012Validator(resolve(document, answered["schema"])).validate(answer.json())
            called += 1
    assert called == sum(operation.documented for operation in OPERATIONS)


def test_every_status_that_is_met_is_described(open_server: Served) -> None:
    document = open_server.client.get("/openapi.json").json()
    for operation in OPERATIONS:
        if not operation.documented:
            continue
        answers = document["paths"][operation.path][operation.method.lower()]["responses"]
        expected = {str(operation.status), "431", "500", *(str(status) for status in operation.errors)}
        if operation.request is not None:
            expected |= {"400", "408", "413", "415"}
        assert expected <= answers.keys()
        assert ("401" in answers) == ("403" in answers)


def test_security_is_described_as_it_is() -> None:
    for required, expected in ((True, [{"bearer": []}]), (False, [{"bearer": []}, {}])):
        app = make_api(FakeTimerService(), Keys(required=required), metrics_open=False)
        document = described_by(app)
        assert document["paths"]["/api/v1/timers/create"]["post"]["security"] == expected
        assert document["paths"]["/metrics"]["get"]["security"] == expected
        assert document["paths"]["/healthz"]["get"]["security"] == []


def described_by(app: Any) -> Any:
    async def ask() -> Any:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
            return (await client.get("/openapi.json")).json()

    return asyncio.run(ask())
