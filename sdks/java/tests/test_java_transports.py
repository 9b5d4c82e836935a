"""Proxies of the environment and HTTP clients of the user: a proxy that passes requests to a real server."""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import test_java_docs as docs
from test_java_docs import jars, server  # noqa: F401 - fixtures

#: A name that only the proxy knows.
URL = "http://tocsin.test:8080"
LISTED = ["default", "default", "UnauthenticatedException"]
UNREACHABLE = ["TransportException"] * 3


class Proxy(ThreadingHTTPServer):
    """Passes everything to the server; with a password, only after it was given."""

    def __init__(self, url, password=None):
        super().__init__(("127.0.0.1", 0), _Passing)
        self.url = url
        self.expected = password and "Basic " + base64.b64encode(password.encode()).decode()
        self.seen = []

    @property
    def port(self):
        return self.server_address[1]


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.server.expected and self.headers["proxy-authorization"] != self.server.expected:
            return self._answer(407, {"proxy-authenticate": 'Basic realm="test"'}, b"")
        self.server.seen.append((self.request_version, self.path, dict(self.headers.items())))
        request = urllib.request.Request(self.server.url + self.path.removeprefix(URL), body)
        request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request) as answer:
                self._answer(answer.status, {}, answer.read())
        except urllib.error.HTTPError as refused:
            self._answer(refused.code, {}, refused.read())

    def _answer(self, status, headers, body):
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def proxying(url, password=None):
    with Proxy(url, password) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def classpath(jars, tmp_path_factory):  # noqa: F811
    classes = tmp_path_factory.mktemp("classes")
    path = os.pathsep.join([str(classes), str(jars["tocsin-client"])])
    source = docs.JAVA / "tests/programs/Transports.java"
    subprocess.run(["javac", "-Xlint:all", "-Werror", "-cp", path, "-d", classes, source], check=True)
    return path


def run(classpath, *arguments, **environment):
    inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    command = [*docs.JVM, classpath, "Transports", URL, *map(str, arguments)]
    done = subprocess.run(command, env=inherited | environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
def test_the_environment_names_a_proxy(classpath, server, name):  # noqa: F811
    with proxying(server.url) as proxy:
        assert run(classpath, **{name: f"http://127.0.0.1:{proxy.port}"}) == LISTED
    assert {path for _, path, _ in proxy.seen} == {f"{URL}/api/v1/namespaces/list", f"{URL}/api/v1/keys/list"}


def test_a_proxy_with_a_password(classpath, server):  # noqa: F811
    with proxying(server.url, "me:p@ss") as proxy:
        assert run(classpath, HTTP_PROXY=f"http://me:p%40ss@127.0.0.1:{proxy.port}") == LISTED


@pytest.mark.parametrize("direct", ["tocsin.test", "example.org, .test", "tocsin.test:8080", "*"])
def test_no_proxy(classpath, server, direct):  # noqa: F811
    with proxying(server.url) as proxy:
        assert run(classpath, HTTP_PROXY=f"127.0.0.1:{proxy.port}", NO_PROXY=direct) == UNREACHABLE
    assert not proxy.seen


@pytest.mark.parametrize("direct", ["sin.test", "tocsin.test:80", "other.tocsin.test"])
def test_no_proxy_of_other_hosts(classpath, server, direct):  # noqa: F811
    with proxying(server.url) as proxy:
        assert run(classpath, HTTP_PROXY=f"127.0.0.1:{proxy.port}", NO_PROXY=direct) == LISTED


def test_a_client_of_the_users_own(classpath, server):  # noqa: F811
    with proxying(server.url) as proxy:
        assert run(classpath, proxy.port, HTTP_PROXY="http://127.0.0.1:1") == LISTED
    for version, _, headers in proxy.seen:
        named = {name.lower(): value for name, value in headers.items()}
        assert version == "HTTP/1.1" and "upgrade" not in named and named["x-hook"] == "1"
