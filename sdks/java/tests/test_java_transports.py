"""Proxies of the environment, HTTP clients of the user, hooks, and what can't be sent: with a proxy that passes requests to a
real server."""

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

# Building takes a while on a slow machine.
pytestmark = pytest.mark.timeout(300)

#: A name that only the proxy knows.
URL = "http://tocsin.test:8080"
LISTED = ["default", "default", "UnauthenticatedException"]
UNREACHABLE = ["TransportException"] * 3


NOT_READY = b'{"error": "NOT_READY", "message": "", "status": 503, "errors": []}'


class Proxy(ThreadingHTTPServer):
    """Passes everything to the server: with a password, only after it was given, and with `busy`, only second tries. Of the
    answers to each operation of `loses`, every other one is lost, from the first on."""

    busy = False
    loses: frozenset[str] = frozenset()

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
        if self.server.busy and len(self.server.seen) % 2:
            return self._answer(503, {}, NOT_READY)
        request = urllib.request.Request(self.server.url + self.path.removeprefix(URL), body)
        request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request) as answer:
                operation = self.path.partition("/api/v1/")[2]
                times = sum(path == self.path for _, path, _ in self.server.seen)
                self.close_connection = operation in self.server.loses and times % 2 == 1
                if not self.close_connection:
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
    path = os.pathsep.join([str(classes), str(jars["tocsin-client"]), f"{docs.JAVA}/driver/target/lib/*"])
    sources = (docs.JAVA / "tests/programs").iterdir()
    subprocess.run(["javac", "-Xlint:all,-try", "-Werror", "-cp", path, "-d", classes, *sources], check=True)
    return path


def run(classpath, *arguments, program="Transports", url=URL, **environment):
    inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    command = [*docs.JVM, classpath, program, url, *map(str, arguments)]
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


def test_every_request_of_a_blocking_call_has_the_span_of_its_caller(classpath, server):  # noqa: F811
    with proxying(server.url) as proxy:
        proxy.busy = True
        printed = run(classpath, "b7ad6b7169203331", program="Tracing", HTTP_PROXY=f"http://127.0.0.1:{proxy.port}")
    assert printed == ["timer traced-1 in default has not finished in time"]
    operations = [path.removeprefix(f"{URL}/api/v1/timers/") for _, path, _ in proxy.seen]
    assert operations[:6] == ["batch/create"] * 4 + ["delete"] * 2 and len(operations) >= 8
    sent = {headers.get("traceparent") for _, _, headers in proxy.seen}
    assert sent == {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


def test_a_call_whose_time_is_over_always_throws_its_own_exception(classpath):
    assert run(classpath, program="Deadlines") == ["DeadlineExceededException"]


def test_a_text_that_no_request_can_contain_is_the_error_of_its_timer(classpath, server):  # noqa: F811
    refused = "a text has half of a surrogate pair, which no request can contain"
    assert run(classpath, program="HalfPair", url=server.url) == [refused, "pending", refused]


def test_a_change_of_a_version_whose_answer_is_lost_is_reported(classpath, server):  # noqa: F811
    operations = ("namespaces/update", "schedules/create", "schedules/update", "flows/put", "calendars/put",
                  "monitors/put")  # fmt: skip
    with proxying(server.url) as proxy:
        proxy.loses = frozenset(operations)
        printed = run(classpath, program="LostAnswers", url=f"http://127.0.0.1:{proxy.port}")
    assert printed[:5] == ["namespace 2", "schedule 1", "schedule 2", "flow 1", "calendar 1"]
    # That of a schedule has no ping URL to lose, nor has a dry run.
    assert printed[5:] == ["monitor s", "monitor m", "monitor may be there", "VersionConflictException"]


def test_limits_of_time_hold_while_all_connections_are_in_use(classpath):
    assert run(classpath, program="Saturated") == [
        "wait over",
        "may be done: false",
        "in time: true, may be done: true",
    ]
