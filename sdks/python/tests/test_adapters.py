"""Receivers in the frameworks themselves: a verified firing, an answer, a refusal, and the raw bytes."""

from __future__ import annotations

import asyncio
import dataclasses

import django
import flask
import httpx
import pytest
from django.conf import settings
from django.test import Client as DjangoClient
from django.urls import path
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from tocsin_client.receiver import Receiver, retry
from tocsin_client.testing import firing, sign

SECRET = "whsec_a2V5MQ=="
RECEIVER = Receiver(SECRET)
SEEN = []


def handler(given):
    SEEN.append(given)
    return retry(after=7)


async def async_handler(given):
    await asyncio.sleep(0)
    return handler(given)


def fastapi(handle):
    return poster(FastAPI(routes=[Route("/hook", RECEIVER.asgi(handle), methods=["POST"])]))


def starlette(handle):
    return poster(Starlette(routes=[Route("/hook", RECEIVER.asgi(handle), methods=["POST"])]))


def mounted(handle):
    return poster(Starlette(routes=[Mount("/hook", app=RECEIVER.asgi(handle))]), "/hook/")


def poster(app, path="/hook"):
    async def send(request):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://tests") as client:
            return await client.post(path, content=request.body, headers=request.headers)

    def post(request):
        response = asyncio.run(send(request))
        return response.status_code, response.headers, response.content

    return post


def with_flask(handle):
    app = flask.Flask("tests")
    app.add_url_rule("/hook", view_func=RECEIVER.flask(handle), methods=["POST"])

    def post(request):
        response = app.test_client().post("/hook", data=request.body, headers=request.headers)
        return response.status_code, response.headers, response.data

    return post


class Urls:
    urlpatterns = []  # noqa: RUF012


def with_django(handle):
    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=Urls, SECRET_KEY="tests")
        django.setup()
    Urls.urlpatterns[:] = [path("hook", RECEIVER.django(handle))]

    def post(request):
        headers = {name: value for name, value in request.headers.items() if name != "content-type"}
        response = DjangoClient(enforce_csrf_checks=True).post(
            "/hook", request.body, content_type="application/json", headers=headers
        )
        return response.status_code, response.headers, response.content

    return post


class Handler:
    """Called like a coroutine function, without being one."""

    __name__ = "object"

    async def __call__(self, given):
        return await async_handler(given)


CASES = [
    (starlette, handler),
    (starlette, async_handler),
    (starlette, Handler()),
    (fastapi, async_handler),
    (with_flask, handler),
    (with_flask, async_handler),
    (with_django, handler),
    (with_django, async_handler),
    (with_django, Handler()),
]


@pytest.mark.parametrize(("adapter", "handle"), CASES, ids=lambda each: each.__name__)
def test_adapter(adapter, handle):
    post = adapter(handle)
    SEEN.clear()
    request = sign(firing("größe", payload={"n": 1}), SECRET)
    status, headers, _ = post(request)
    assert (status, headers["retry-after"]) == (503, "7")
    assert [(each.timer_id, each.payload, each.body) for each in SEEN] == [("größe", {"n": 1}, request.body)]
    del request.headers["webhook-signature"]
    status, _, content = post(request)
    assert (status, content) == (401, b"the request is not signed") and len(SEEN) == 1


@pytest.mark.parametrize("adapter", [starlette, with_flask, with_django], ids=lambda each: each.__name__)
def test_bodies_are_bounded_while_they_are_read(adapter):
    post = adapter(handler)
    SEEN.clear()
    request = sign(firing(), SECRET)
    status, _, content = post(dataclasses.replace(request, body=b"x" * 5_000_000))
    assert (status, content) == (413, b"the body is too large for a callback") and not SEEN


def test_flask_takes_a_body_that_was_read_before():
    app = flask.Flask("tests")
    app.before_request(lambda: flask.request.get_data() and None)
    app.add_url_rule("/hook", view_func=RECEIVER.flask(handler), methods=["POST"])
    request = sign(firing(), SECRET)
    assert app.test_client().post("/hook", data=request.body, headers=request.headers).status_code == 503
    assert app.test_client().post("/hook", data=request.body, headers=request.headers).headers["retry-after"] == "7"
