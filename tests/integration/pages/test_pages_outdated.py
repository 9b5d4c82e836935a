"""A form that is older than what is stored changes nothing, and loses nothing of what it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.integration.pages.conftest import Browser, Node

URL = "http://127.0.0.1:9/x"
OTHER_URL = "http://127.0.0.1:9/other"
TYPED = "typed here"
IN_DEFAULT = {"namespace": "default"}


class FormReader(HTMLParser):
    """The fields of the first form of a page that has a version."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[list[tuple[str, str]]] = []
        self._inside = False
        self._select = self._area = ""
        self._first = self._option = False
        self.feed(page)

    @property
    def fields(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, value in next(each for each in self.forms if dict(each).get("version")):
            found.setdefault(name, []).append(value)
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name = given.get("name", "")
        if tag == "form":
            self.forms.append([])
            self._inside = True
        elif not self._inside:
            return
        elif tag == "input" and name and (given.get("type") not in ("checkbox", "radio") or "checked" in given):
            self.forms[-1].append((name, given.get("value", "")))
        elif tag == "select":
            self._select = name
            self._first = True
            self.forms[-1].append((name, ""))
        elif tag == "option":
            # The first one, unless another is selected.
            self._option = "selected" in given or self._first
            self._first = False
            if self._option:
                self.forms[-1][-1] = (self._select, given.get("value", ""))
        elif tag == "textarea":
            self._area = name
            self.forms[-1].append((name, ""))

    def handle_data(self, data: str) -> None:
        if self._option and data.strip() and not self.forms[-1][-1][1]:
            # An option without a value has its text.
            self.forms[-1][-1] = (self._select, data)
        if self._area:
            name, before = self.forms[-1].pop()
            self.forms[-1].append((name, before + data))

    def handle_endtag(self, tag: str) -> None:
        self._option = False
        if tag == "textarea":
            self._area = ""
        elif tag == "form":
            self._inside = False


@dataclass
class Case:
    """Something that two people edit: by a form that changes `field`, and meanwhile by requests to the API. `get` and
    `deleted` are the bodies of requests that read and delete it; `seen`: what is stored in it at a dotted path."""

    page: str
    action: str
    create: tuple[str, dict[str, Any]]
    change: tuple[str, dict[str, Any]]
    get: tuple[str, dict[str, Any]]
    theirs: tuple[str, Any]
    ours: tuple[str, Any]
    field: dict[str, str] = field(default_factory=lambda: {"description": TYPED})


_TIMER = {**IN_DEFAULT, "id": "t", "callbackUrl": URL}
_FLOW = {**IN_DEFAULT, "match": "customer:"}
_CALENDAR = {**IN_DEFAULT, "name": "holidays", "weekdays": ["SUN"]}
_CREDENTIAL = {**IN_DEFAULT, "name": "api", "type": "bearer", "hosts": ["api.example.com"]}
_MONITOR = {**IN_DEFAULT, "id": "backup"}
CASES = {
    "timer": Case(
        "/timers/edit?namespace=default&id=t", "/timers/edit",
        ("timers/create", {**_TIMER, "delay": "1h"}),
        ("timers/update", {**IN_DEFAULT, "timerId": "t", "callbackUrl": OTHER_URL}),
        ("timers/get", {**IN_DEFAULT, "timerId": "t"}),
        ("callbackUrl", OTHER_URL), ("description", TYPED),
    ),
    "schedule": Case(
        "/schedules/edit?namespace=default&id=t", "/schedules/edit",
        ("schedules/create", {**_TIMER, "cron": "0 3 * * *"}),
        ("schedules/update", {**IN_DEFAULT, "scheduleId": "t", "callbackUrl": OTHER_URL}),
        ("schedules/get", {**IN_DEFAULT, "scheduleId": "t"}),
        ("callbackUrl", OTHER_URL), ("description", TYPED),
    ),
    "flow": Case(
        "/flows/edit?namespace=default&match=customer%3A", "/flows/edit",
        ("flows/put", {**_FLOW, "total": {"parallelism": 7}}),
        ("flows/put", {**_FLOW, "total": {"parallelism": 8}}),
        ("flows/get", _FLOW),
        ("total.parallelism", 8), ("perKey.parallelism", 3), {"perKey.parallelism": "3"},
    ),
    "calendar": Case(
        "/calendars/edit?namespace=default&name=holidays", "/calendars/edit",
        ("calendars/put", _CALENDAR),
        ("calendars/put", {**_CALENDAR, "weekdays": ["SAT", "SUN"]}),
        ("calendars/get", {**IN_DEFAULT, "name": "holidays"}),
        ("weekdays", ["SAT", "SUN"]), ("description", TYPED),
    ),
    "credential": Case(
        "/credentials/edit?namespace=default&name=api", "/credentials/edit",
        ("credentials/put", {**_CREDENTIAL, "token": "a-secret-token"}),
        ("credentials/put", {**_CREDENTIAL, "hosts": ["api.example.com:8443"], "token": "a-secret-token"}),
        ("credentials/get", {**IN_DEFAULT, "name": "api"}),
        ("hosts", ["api.example.com:8443"]), ("description", TYPED),
    ),
    "monitor": Case(
        "/monitors/edit?namespace=default&id=backup", "/monitors/edit",
        ("monitors/put", {**_MONITOR, "every": "1h"}),
        ("monitors/put", {**_MONITOR, "every": "2h"}),
        ("monitors/get", _MONITOR),
        ("monitor.every", "2h"), ("monitor.description", TYPED),
    ),
    "namespace": Case(
        "/namespaces/shop", "/namespaces/change",
        ("namespaces/create", {"name": "shop"}),
        ("namespaces/update", {"name": "shop", "onFailure": {"url": OTHER_URL}, "quotas": {"pending": 100}}),
        ("namespaces/get", {"name": "shop"}),
        ("onFailure.url", OTHER_URL), ("retention", "7d"), {"retention": "7d"},
    ),
}  # fmt: skip


async def api(browser: Browser, operation: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await browser.client.post(f"/api/v1/{operation}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def at(answer: Any, path: str) -> Any:
    """The value of an answer at a dotted path; None if there is none."""
    for name in path.split("."):
        answer = (answer or {}).get(name)
    return answer


@pytest.mark.parametrize("kind", CASES)
async def test_an_old_form_does_not_undo_what_others_have_changed(node: Node, kind: str) -> None:
    browser, case = node.browser(), CASES[kind]
    await api(browser, *case.create)
    fields = FormReader((await browser.get(case.page)).text).fields
    assert fields
    await api(browser, *case.change)

    refused = await browser.post(case.action, {**fields, **case.field})
    assert refused.status_code == 409, refused.text
    assert "since this form was opened. Nothing was saved. What you entered is still here" in refused.text
    assert f'href="{case.page.replace("&", "&amp;")}" target="_blank"' in refused.text
    stored = await api(browser, *case.get)
    assert (at(stored, case.theirs[0]), at(stored, case.ours[0])) == (case.theirs[1], at(stored, "retention"))

    # The page has what was typed, and is as old as before.
    again = FormReader(refused.text).fields
    for name, value in case.field.items():
        assert again[name] == [value]
    assert (await browser.post(case.action, again)).status_code == 409

    opened = FormReader((await browser.get(case.page)).text).fields
    assert (await browser.post(case.action, {**opened, **case.field})).status_code == 303
    stored = await api(browser, *case.get)
    assert (at(stored, case.theirs[0]), at(stored, case.ours[0])) == (case.theirs[1], case.ours[1])


@pytest.mark.parametrize("kind", ["flow", "calendar", "credential", "monitor"])
async def test_a_form_does_not_create_again_what_others_have_deleted(node: Node, kind: str) -> None:
    browser, case = node.browser(), CASES[kind]
    await api(browser, *case.create)
    fields = FormReader((await browser.get(case.page)).text).fields
    operation, name = case.get
    deleted = await browser.client.post(f"/api/v1/{operation.replace('/get', '/delete')}", json=name)
    assert deleted.status_code == 204, deleted.text
    refused = await browser.post(case.action, {**fields, **case.field})
    assert (refused.status_code, "was changed or deleted since" in refused.text) == (409, True)
    assert FormReader(refused.text).fields.items() >= {each: [value] for each, value in case.field.items()}.items()
    assert (await browser.client.post(f"/api/v1/{operation}", json=name)).status_code == 404


async def test_an_attempt_or_another_time_does_not_make_the_form_of_a_timer_old(node: Node) -> None:
    browser, case = node.browser(), CASES["timer"]
    await api(browser, *case.create)
    fields = FormReader((await browser.get(case.page)).text).fields
    moved = await api(browser, "timers/update", {**IN_DEFAULT, "timerId": "t", "delay": "2h"})
    # A form that sets a time of its own would undo that, one that keeps the time does not.
    refused = await browser.post(case.action, {**fields, "when": "in", "delay": "3h"})
    assert refused.status_code == 409
    assert (await browser.post(case.action, {**fields, **case.field})).status_code == 303
    stored = await api(browser, *case.get)
    assert (stored["executeAt"], stored["description"]) == (moved["executeAt"], TYPED)


@pytest.mark.parametrize("kind", ["timer", "schedule"])
async def test_an_old_form_shows_no_command_that_would_undo_changes(node: Node, kind: str) -> None:
    browser, case = node.browser(), CASES[kind]
    await api(browser, *case.create)
    fields = FormReader((await browser.get(case.page)).text).fields
    path = f"/ui/{kind}s/equivalent"
    assert URL not in (await browser.post(path, {**fields, **case.field, "mode": "edit"})).text
    await api(browser, *case.change)
    shown = (await browser.post(path, {**fields, **case.field, "mode": "edit"})).text
    assert f"The {kind} was changed since this form was opened." in shown
    assert f"{kind}s/update" not in shown
