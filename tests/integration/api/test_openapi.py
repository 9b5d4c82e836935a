"""The OpenAPI document: every server serves the committed one, its examples work, and generators understand it.
tests/integration/server/openapi_requests.py checks a server against it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from api_server import Keys, Served
from jsonschema import Draft202012Validator
from scripts.openapi.codes import kind_of_code
from scripts.openapi.document import describe, described

from tocsin.administration import put_api_key
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.request import compose
from tocsin.http_client.target import parse_url
from tocsin.model.access import ApiKey, Role
from tocsin.ports.http import Invocation
from tocsin.service_calls.messages import CallKey
from tocsin.settings.declared import SETTINGS
from tocsin.web.api.request import ApiLimits
from tocsin.web.api.routes import OPERATIONS


@pytest.fixture(scope="module")
def open_server(serve: Callable[..., Served]) -> Served:
    return serve()


COMMITTED = (Path(__file__).parents[3] / "docs" / "reference" / "openapi.json").read_bytes()
#: What is served although the document does not list it.
UNDOCUMENTED = {"openapi"}
DESCRIPTION = json.loads(COMMITTED)


def resolve(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A self-contained schema that includes the document's components."""
    return {**schema, "components": document["components"]}


def test_the_committed_document_is_what_the_generator_makes() -> None:
    assert describe() == COMMITTED, "run `make docs`"


def test_the_document_has_every_operation() -> None:
    assert [each.operation.name for each in described()] == [
        operation.name for operation in OPERATIONS if operation.name not in UNDOCUMENTED
    ]


def test_every_server_serves_the_committed_document(serve: Callable[..., Served], open_server: Served) -> None:
    other = serve(keys=Keys(required=True), metrics_open=False, agent=False, limits=ApiLimits(batch_items_max=7))
    for server in (open_server, other):
        for path in ("/openapi.json", "/api/v1/openapi.json"):
            answer = server.client.get(path)
            assert answer.content == COMMITTED, "run `make docs`"
            # httpx asks for it.
            assert answer.headers["content-encoding"] == "gzip"
            assert int(answer.headers["content-length"]) < len(COMMITTED) / 5
            assert server.client.get(path, headers={"accept-encoding": "identity"}).content == COMMITTED
            known = {"if-none-match": answer.headers["etag"]}
            assert server.client.get(path, headers=known).status_code == 304


def test_document_suits_client_generators() -> None:
    """The document has nothing that makes generated clients send unset fields or lose a type."""
    text = COMMITTED.decode()
    assert '"default":' not in text
    assert '"oneOf":' not in text
    schemas = DESCRIPTION["components"]["schemas"]
    for name, schema in schemas.items():
        assert schema["type"] in ("object", "string"), name
    # In requests only the described words are taken; answers may bring others some day.
    assert schemas["ListTimers"]["properties"]["status"]["items"] == {"$ref": "#/components/schemas/TimerStatus"}
    assert {"type": "string"} in schemas["Timer"]["properties"]["status"]["anyOf"]
    assert {"type": "string"} in schemas["Problem"]["properties"]["error"]["anyOf"]


def test_a_timer_has_one_instant_in_the_schema_too() -> None:
    validator = Draft202012Validator(resolve(DESCRIPTION, DESCRIPTION["components"]["schemas"]["CreateTimer"]))
    timer = {"namespace": "default", "id": "a", "callbackUrl": "https://a.example/"}
    both = {"delay": "1s", "executeAt": "2027-01-31T12:00:00Z"}
    assert [validator.is_valid({**timer, **when}) for when in ({"delay": "1s"}, {}, both)] == [True, False, False]


def test_limits_name_their_settings() -> None:
    known = {setting.name for setting in SETTINGS.values()}
    named = set(re.findall(r'"x-tocsin-settings": \[([^\]]*)\]', COMMITTED.decode()))
    assert named
    assert {name for names in named for name in re.findall(r'"([^"]+)"', names)} <= known


def test_examples_of_responses_and_problems_match_their_schemas() -> None:
    for methods in DESCRIPTION["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                for content in answer.get("content", {}).values():
                    validator = Draft202012Validator(resolve(DESCRIPTION, content["schema"]))
                    if "example" in content:
                        validator.validate(content["example"])
                    for name, example in content.get("examples", {}).items():
                        assert example == {"$ref": f"#/components/examples/{name}"}
                        problem = DESCRIPTION["components"]["examples"][name]["value"]
                        validator.validate(problem)
                        assert (str(problem["status"]), problem["error"]) == (status, name)


def test_webhook_schema_matches_the_callback_that_is_sent(open_server: Served) -> None:
    invocation = Invocation(
        namespace="default", timer_id="a", message_id="m-1", url="https://a.example/", method="POST", headers=None,
        payload=msgspec.Raw(b'{"order":17}'), execute_at=0, fired_at=1, attempt=1, timeout_us=1,
        secrets=("whsec_" + 32 * "A",),
        traceparent=None,
    )  # fmt: skip
    head, _, body = compose(invocation, parse_url("https://a.example/"), 1, CallbackLimits()).partition(b"\r\n\r\n")
    webhook = DESCRIPTION["webhooks"]["timerFired"]["post"]
    content = webhook["requestBody"]["content"]["application/json"]
    Draft202012Validator(resolve(DESCRIPTION, content["schema"])).validate(json.loads(body))
    assert json.loads(body).keys() == content["example"].keys()
    sent = {line.split(b":")[0].decode() for line in head.lower().split(b"\r\n")}
    assert {header["name"] for header in webhook["parameters"]} - sent == {"traceparent"}


def test_request_examples_are_accepted_and_responses_match_their_schemas(open_server: Served) -> None:
    open_server.service.clear()
    open_server.agent.clear()
    document = open_server.client.get("/openapi.json").json()
    admin = open_server.keys.add("tk_examples", Role.ADMIN)
    asyncio.run(put_api_key(open_server.keys.stored, ApiKey("1f0c9a7be2d4", "", Role.READ)))
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
            if path.startswith(("/api/v1/monitors/", "/ping/", "/api/v1/inbox/", "/.well-known/openid")):
                # These take an engine, the database of an inbox, or keys that sign: tests of a server send them.
                called += 1
                continue
            if path.endswith("/retry"):
                # The call of the paths before has been deleted.
                _fail_a_call(open_server, document, path, admin)
            answer = open_server.client.request(method, path, json=example, headers=admin)
            shown = operation["responses"][str(answer.status_code)]
            assert answer.is_success, (path, answer.text)
            for media_type, answered in shown.get("content", {}).items():
                assert answer.headers["content-type"].startswith(media_type)
                if media_type == "application/json":
                    Draft202012Validator(resolve(document, answered["schema"])).validate(answer.json())
            called += 1
    assert called == len(described())


def _fail_a_call(server: Served, document: dict[str, Any], path: str, headers: dict[str, str]) -> None:
    submit = document["paths"]["/api/v1/tenants/{tenantId}/service-calls"]["post"]
    example = submit["requestBody"]["content"]["application/json"]["example"]
    calls, _, call_id = path.removesuffix("/retry").rpartition("/")
    sent = {name: value for name, value in example.items() if name != "idempotencyKey"} | {"serviceCallId": call_id}
    assert server.client.post(calls, json=sent, headers=headers).is_success
    server.agent.change(CallKey(calls.split("/")[-2], call_id), status="Failed")


def test_every_returned_status_is_described(open_server: Served) -> None:
    document = open_server.client.get("/openapi.json").json()
    for operation, about, *_ in described():
        answers = document["paths"][operation.path][operation.method.lower()]["responses"]
        expected = {str(operation.status), "431", "500", *(str(kind_of_code(code).status) for code in about.errors)}
        if operation.request is not None:
            expected |= {"400", "408", "413", "415"}
        assert expected <= answers.keys()
        assert ("401" in answers) == ("403" in answers)


def test_described_security_matches_the_server() -> None:
    security = {
        path: operation["security"] for path, method in DESCRIPTION["paths"].items() for operation in method.values()
    }
    assert security["/api/v1/timers/create"] == security["/metrics"] == [{"bearer": []}, {}]
    assert security["/healthz"] == []
