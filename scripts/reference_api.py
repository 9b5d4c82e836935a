"""The reference pages of the API and of its errors, made from the OpenAPI document and the table of codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tocsin.api.openapi import describe
from tocsin.http.codes import CODES, FAILURES

Json = dict[str, Any]

_API_INTRO = """# API

JSON over HTTP. This page is made from [`openapi.json`](openapi.json), the OpenAPI 3.1 document that every server of this
release gives out at `/api/v1/openapi.json`; `/docs` is a page to read and try it. Clients can be generated from it: our tests
do so with openapi-python-client, openapi-typescript and oapi-codegen.

Members are camelCase, instants RFC 3339 (`2027-01-31T12:00:00.123456Z`; offsets are accepted, naive times refused),
durations texts such as `500ms`, `30s`, `5m`, `24h`. Unknown members are refused by name, and so are unknown parameters in the
query (`INVALID_INPUT`), except by `/healthz`, `/readyz`, `/metrics` and the documentation. Requests take a timer's id as `id`
or as `timerId`, whichever of them is described, and single values where an array of words is described. With an API key:
`Authorization: Bearer tk_…`.

Limits are those of a server as it comes; the [settings](settings.md) in parentheses change them.

Errors are `application/problem+json` (RFC 9457), a [Problem](#problem), with a stable `error` code:
[what each code means](errors.md). Every answer carries `x-correlation-id`: the one that was sent, or a new one. 429 and 503
bring `Retry-After`. Every call can also answer {always}.

Later releases add operations, optional members of requests, members of answers and words: pass over what you don't know.
"""

_ERRORS_INTRO = """# Errors

Every error of the API is `application/problem+json` (RFC 9457):

```json
{example}
```

`error` is a stable code, `errors` names each bad field, and `correlationId` leads to the request in the server's log. A
later release may add codes: go by the status for one that you don't know. **In short**: mend 4xx, other than 408 and 429;
send the same again after 408, 429 and 503, after the seconds that `Retry-After` says; report 500.

## Codes
"""

_FAILURES_INTRO = """
## Failed attempts

`lastError` of a timer and `error` of its attempts begin with one of these words, before a colon; `errorMeta.kind` of a
service call is one. *Repeated*: a timer's retry policy repeats it; [a service call](../explanation/service-agent.md) is
repeated only where its own policy says so.

| word | repeated | what happened | what to do |
| --- | --- | --- | --- |
"""

#: Answers that every call with a key and a body can give; the operations list what is their own.
_EVERYWHERE = ("401", "403", "408", "413", "415", "431", "500")


def api_page(generated: str) -> str:
    """docs/reference/api.md."""
    document: Json = json.loads(describe())
    schemas = document["components"]["schemas"]
    always = (
        f"{status} {_names(code for code, row in CODES.items() if str(row.status) == status)}" for status in _EVERYWHERE
    )
    lines = [generated, _API_INTRO.replace("{always}", ", ".join(always))]
    asked: dict[str, str] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            title = f"{method.upper()} {path}"
            lines += _operation(title, operation, schemas)
            if "requestBody" in operation:
                asked.setdefault(_named(operation["requestBody"]["content"]["application/json"]["schema"]), title)
    lines += _webhook(document["webhooks"]["timerFired"]["post"], schemas)
    lines += ["# Objects", ""]
    for name, schema in schemas.items():
        lines += [f"## {name}", "", schema["description"], ""]
        if name in asked:
            lines += [f"Its members stand under `{asked[name]}`.", ""]
            continue
        lines += _members(schema, schemas) if schema["type"] == "object" else [_words(schema["enum"]), ""]
    return "\n".join(lines).rstrip() + "\n"


def errors_page(generated: str) -> str:
    """docs/reference/errors.md."""
    document: Json = json.loads(describe())
    example = document["components"]["examples"]["INVALID_INPUT"]["value"]
    lines = [generated, _ERRORS_INTRO.replace("{example}", json.dumps(example, indent=2))]
    lines += ["| code | status | what happened | what to do |", "| --- | --- | --- | --- |"]
    lines += [
        f'| <a id="{code}"></a>`{code}` | {row.status} | {row.when} | {row.remedy} |' for code, row in CODES.items()
    ]
    failures = [
        f"| `{kind}` | {'yes' if row.repeated else 'no'} | {row.when} | {row.remedy} |"
        for kind, row in FAILURES.items()
    ]
    return "\n".join(lines) + "\n" + _FAILURES_INTRO + "\n".join(failures) + "\n"


def _operation(title: str, operation: Json, schemas: Json) -> list[str]:
    role = "" if "Needs a key" in operation["description"] else " Open to everybody."
    lines = [f"## {title}", "", f"{operation['summary'].rstrip('?')}. {operation['description']}{role}", ""]
    if parameters := operation.get("parameters"):
        lines += ["| parameter | in | type | limits | meaning |", "| --- | --- | --- | --- | --- |"]
        for given in parameters:
            name = f"`{given['name']}`" + (", required" if given["required"] else "")
            lines.append(
                f"| {name} | {given['in']} | {_type(given['schema'])} | {_limits(given['schema'])} | {given['description']} |"
            )
        lines.append("")
    if (body := operation.get("requestBody")) is not None:
        content = body["content"]["application/json"]
        lines += [f"**Request**, {_type(content['schema'])}{'' if body['required'] else '; it may be left out'}:", ""]
        lines += _members(schemas[_named(content["schema"])], schemas)
        if "example" in content:
            lines += ["```json", json.dumps(content["example"], indent=2), "```", ""]
    lines += ["| answer | body |", "| --- | --- |"]
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
    lines += ["", "The body is a [Callback](#callback). The answer may be a [CallbackAnswer](#callbackanswer):", ""]
    lines += ["| answer | meaning |", "| --- | --- |"]
    lines += [f"| {status} | {answer['description']} |" for status, answer in webhook["responses"].items()]
    return [*lines, ""]


def _members(schema: Json, schemas: Json) -> list[str]:
    if not schema["properties"]:
        return ["It has no members.", ""]
    lines = ["| member | type | limits | meaning |", "| --- | --- | --- | --- |"]
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
    """What it is, in a few words."""
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
