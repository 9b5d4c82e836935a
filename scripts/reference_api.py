"""The reference pages of the API and of its errors, made from the OpenAPI document and the table of codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from scripts.openapi.codes import CODES, EXIT_CODES, FAILURES, SUSPENSIONS, kind_of_code
from scripts.openapi.document import describe

Json = dict[str, Any]

_API_INTRO = """# API

JSON over HTTP. This page is generated from [`openapi.json`](openapi.json), the OpenAPI 3.1 document that every server of
this release serves at `/api/v1/openapi.json`; `/docs` shows it as a page. You can generate clients from it: the tests do so
with openapi-python-client, openapi-typescript and oapi-codegen.

Fields are camelCase. Instants are RFC 3339 (`2027-01-31T12:00:00.123456Z`; offsets are accepted, times without a zone are
refused). Durations are strings such as `500ms`, `30s`, `5m`, `24h`. Unknown fields and unknown query parameters are refused
by name (`INVALID_INPUT`); only `/healthz`, `/readyz`, `/metrics` and the documentation ignore the query. Requests accept a
timer's id as `id` or as `timerId`, whichever is described, and a single value in place of an array of enum values. Send an
API key as `Authorization: Bearer tk_…`.

A server started with `tocsin dev` also has `dev/clock/get` and `dev/clock/advance`, which no document lists:
[test a flow of days](../how-to/test-flows.md).

Limits are the defaults; the [settings](settings.md) in parentheses change them.

Errors are `application/problem+json` (RFC 9457), a [Problem](#problem), with a stable `error` code: [all codes](errors.md).
Every response has the header `x-correlation-id`: the value of the request, or a new one. 429 and 503 have `Retry-After`.
Every operation can also return {always}.

Later releases add operations, optional request fields, response fields, and enum values: ignore what you don't know.
"""

_ERRORS_INTRO = """# Errors

Every error of the API is `application/problem+json` (RFC 9457):

```json
{example}
```

`error` is a stable code, and `type` the address of its row below. `errors` names each invalid field, and `correlationId`
identifies the request in the server's log. A later release may add codes: handle an unknown code by its status. **In short**:
correct the request after a 4xx other than 408 and 429; retry the same request after 408, 429 and 503, after the seconds in
`Retry-After`; report 500.

## Codes
"""

_FAILURES_INTRO = """
## Failed attempts

`lastError` of a timer and `error` of its attempts begin with one of these codes, before a colon; `errorMeta.kind` of a
service call is one of them. *Retried*: the timer's retry policy retries the attempt; [a service
call](../explanation/service-agent.md) is retried only by its own policy.

Requests that the server's own machine could not send are no attempts and have [codes of their
own](callbacks.md#what-is-no-attempt).

| code | retried | cause | remedy |
| --- | --- | --- | --- |"""

_SUSPENSIONS_INTRO = """
## Suspended timers

A pending timer that is due and can't be called may be suspended; `suspended` begins with the reason. No attempt is counted,
and it fires when the cause is gone, except for `bad_record`.

| reason | cause | remedy |
| --- | --- | --- |"""

_EXITS_INTRO = """
## Exit codes

With which code a command ends. `tocsin exec` ends with that of the command that it runs: 127 if there is no such command, 126
if it can't be run. A server that does not start names the setting or the file: with `SECRETS_KEY_MISSING`, the id of a key of
[encrypted secrets](../how-to/encrypt-secrets.md) that it has to be given.

| code | cause | remedy |
| --- | --- | --- |"""

#: Statuses that every operation with a key and a body can return; operations list only their own.
_EVERYWHERE = ("401", "403", "408", "413", "415", "431", "500")


def api_page(generated: str) -> str:
    """docs/reference/api.md."""
    document: Json = json.loads(describe())
    schemas = document["components"]["schemas"]
    always = (
        f"{status} {_names(code for code in CODES if str(kind_of_code(code).status) == status)}"
        for status in _EVERYWHERE
    )
    lines = [generated, _API_INTRO.replace("{always}", ", ".join(always))]
    asked: dict[str, str] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            title = f"{method.upper()} {path}"
            lines += _operation(title, operation, schemas)
            if "application/json" in operation.get("requestBody", {}).get("content", {}):
                asked.setdefault(_named(operation["requestBody"]["content"]["application/json"]["schema"]), title)
    lines += _webhook(document["webhooks"]["timerFired"]["post"], schemas)
    lines += ["# Objects", ""]
    for name, schema in schemas.items():
        lines += [f"## {name}", "", schema["description"], ""]
        if name in asked:
            lines += [f"Its fields are listed under `{asked[name]}`.", ""]
            continue
        lines += _members(schema, schemas) if schema["type"] == "object" else [_words(schema["enum"]), ""]
    return "\n".join(lines).rstrip() + "\n"


def errors_page(generated: str) -> str:
    """docs/reference/errors.md."""
    document: Json = json.loads(describe())
    example = document["components"]["examples"]["INVALID_INPUT"]["value"]
    lines = [generated, _ERRORS_INTRO.replace("{example}", json.dumps(example, indent=2))]
    lines += ["| code | status | cause | remedy |", "| --- | --- | --- | --- |"]
    lines += [
        f'| <a id="{code}"></a>`{code}` | {kind_of_code(code).status} | {row.when} | {row.remedy} |'
        for code, row in CODES.items()
    ]
    failures = [
        f'| <a id="{kind.replace("<", "").replace(">", "")}"></a>`{kind}` | {"yes" if row.repeated else "no"} '
        f"| {row.when} | {row.remedy} |"
        for kind, row in FAILURES.items()
    ]
    exits = [f"| {number} | {when} | {remedy} |" for number, when, remedy in EXIT_CODES]
    suspensions = [f"| `{reason}` | {when} | {remedy} |" for reason, (when, remedy) in SUSPENSIONS.items()]
    parts = [*lines, _FAILURES_INTRO, *failures, _SUSPENSIONS_INTRO, *suspensions, _EXITS_INTRO, *exits]
    return "\n".join(parts) + "\n"


def _operation(title: str, operation: Json, schemas: Json) -> list[str]:
    role = "" if "Requires a key" in operation["description"] else " Requires no key."
    lines = [f"## {title}", "", f"{operation['summary'].rstrip('?')}. {operation['description']}{role}", ""]
    if parameters := operation.get("parameters"):
        lines += ["| parameter | in | type | limits | meaning |", "| --- | --- | --- | --- | --- |"]
        for given in parameters:
            name = f"`{given['name']}`" + (", required" if given["required"] else "")
            lines.append(
                f"| {name} | {given['in']} | {_type(given['schema'])} | {_limits(given['schema'])} | {given['description']} |"
            )
        lines.append("")
    body = operation.get("requestBody")
    if body is not None and (content := body["content"].get("application/json")) is not None:
        lines += [f"**Request**, {_type(content['schema'])}{'' if body['required'] else '; optional'}:", ""]
        lines += _members(schemas[_named(content["schema"])], schemas)
        if "example" in content:
            lines += ["```json", json.dumps(content["example"], indent=2), "```", ""]
    lines += ["| response | body |", "| --- | --- |"]
    for status, answer in operation["responses"].items():
        content = answer.get("content", {})
        if "application/problem+json" in content:
            if status not in _EVERYWHERE:
                lines.append(f"| {status} | {_names(content['application/problem+json']['examples'])} |")
            continue
        bodies = [f"{_type(part['schema'])}, `{media_type}`" for media_type, part in content.items()]
        headers = [f"header `{name}`" for name in answer["headers"] if name != "x-correlation-id"]
        lines.append(f"| {status} | {'; '.join([*bodies, *headers]) or 'none'} |")
    return [*lines, ""]


def _webhook(webhook: Json, schemas: Json) -> list[str]:
    lines = ["## The callback", "", webhook["description"], "", "[More about callbacks](callbacks.md).", ""]
    lines += ["| header | meaning |", "| --- | --- |"]
    lines += [f"| `{header['name']}` | {header['description']} |" for header in webhook["parameters"]]
    lines += [
        "",
        "The body is a [Callback](#callback). The response's body may be a [CallbackAnswer](#callbackanswer):",
        "",
    ]
    lines += ["| response | meaning |", "| --- | --- |"]
    lines += [f"| {status} | {answer['description']} |" for status, answer in webhook["responses"].items()]
    return [*lines, ""]


def _members(schema: Json, schemas: Json) -> list[str]:
    if not schema["properties"]:
        return ["No fields.", ""]
    lines = ["| field | type | limits | meaning |", "| --- | --- | --- | --- |"]
    for name, field in schema["properties"].items():
        shown = f"`{name}`" + (", required" if name in schema.get("required", ()) else "")
        if schema.get("additionalProperties", True) is not False:
            shown = f"`{name}`" + ("" if name in schema.get("required", ()) else ", optional")
        text = " ".join(field.get("description", schemas.get(_named(field), {}).get("description", "")).split())
        lines.append(f"| {shown} | {_type(field)} | {_limits(field)} | {text} |")
    return [*lines, ""]


def _named(schema: Json) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _type(schema: Json) -> str:
    """The type in a few words."""
    if name := _named(schema):
        return f"[{name}](#{name.lower()})"
    if (parts := schema.get("anyOf")) is not None:
        # An open enum is shown as the enum.
        shown = [_type(part) for part in parts if "x-go-type" not in schema or "$ref" in part]
        return " or ".join(shown)
    kind = schema.get("type", "any JSON")
    if kind == "array":
        return f"array of {_type(schema['items'])}"
    if schema.get("format") == "date-time":
        return "instant"
    if "us|ms|s|m|h|d" in schema.get("pattern", ""):
        return "duration"
    if kind == "object" and isinstance(inner := schema.get("additionalProperties"), dict):
        return f"object of {_type(inner)}"
    return {"integer": "whole number", "boolean": "true or false"}.get(kind, kind)


def _limits(schema: Json) -> str:
    parts = list(_limit_words(schema))
    if settings := schema.get("x-tocsin-settings"):
        parts.append("(" + ", ".join(f"`{name}`" for name in settings) + ")")
    return ", ".join(parts).replace(", (", " (")


def _limit_words(schema: Json) -> Iterator[str]:
    for part in (schema, *schema.get("anyOf", ())):
        if "maxLength" in part:
            yield f"{part.get('minLength', 0)} to {part['maxLength']} characters"
        if "minimum" in part and "maximum" in part:
            yield f"{part['minimum']:g} to {part['maximum']:g}"
        elif "minimum" in part:
            yield f"at least {part['minimum']:g}"
        if "maxItems" in part:
            yield f"at most {part['maxItems']}"
            yield from (f"each {words}" for words in _limit_words(part["items"]))
        if "maxProperties" in part:
            yield f"at most {part['maxProperties']}"
        if "x-bytes-max" in part:
            yield f"at most {part['x-bytes-max']:,} bytes"


def _names(codes: Any) -> str:
    return " ".join(f"[`{code}`](errors.md#{code})" for code in codes)


def _words(words: list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
