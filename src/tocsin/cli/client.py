"""The HTTP client of the commands: synchronous, with retries after 429 and 503."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import httpx
import msgspec

from tocsin.cli import output
from tocsin.cli.command import Refused, Unreachable, WrongUsage

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 60.0
#: Retries after 429 and 503, and the longest pause between two, even if Retry-After asks for more.
RETRIES_MAX = 6
RETRY_AFTER_S_MAX = 5.0
RETRY_AFTER_S_DEFAULT = 0.5

_RETRIED = frozenset({429, 503})
#: Codes of a 503 after which certainly nothing was done, as after any 429. After others the outcome may be unknown.
_NOTHING_DONE = frozenset({"NO_ROOM_FOR_BODY", "REQUEST_EXPIRED"})
#: On the first try only: the server need not look for keys that it can't know.
_FIRST_TRY = {"tocsin-first-try": "1"}
#: Response headers of a create that wrote nothing.
_FOUND = {"tocsin-existing": "existing", "idempotency-replayed": "replayed"}


class ServerRefused(Refused):
    """The server's error response. `code` is its stable code, `errors` its invalid fields as (path, reason)."""

    def __init__(self, status: int, code: str, detail: str, errors: list[tuple[str, str]]) -> None:
        self.status = status
        self.code = code
        self.errors = errors
        lines = [f"{code}: {detail}" if detail and not errors else code]
        lines += [f"  {path}: {reason}" if path else f"  {reason}" for path, reason in errors]
        super().__init__("\n".join(lines))


class UnknownResponse(Refused):
    """An error response that is none of Tocsin's, such as one of a proxy."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Client:
    """Calls one server. Safe to share between threads; a context manager."""

    def __init__(
        self,
        server: str,
        key: str | None = None,
        answer_timeout_s: float | None = ANSWER_TIMEOUT_S,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`headers` are further ones of each request."""
        if not server.startswith(("http://", "https://")):
            raise WrongUsage(f"--server: {server!r} is not a URL; write it as http://127.0.0.1:8080")
        self.server = server.rstrip("/")
        self._http = httpx.Client(
            base_url=self.server,
            headers={
                "content-type": "application/json",
                **({"authorization": f"Bearer {key}"} if key else {}),
                **(headers or {}),
            },
            timeout=httpx.Timeout(answer_timeout_s, connect=CONNECT_TIMEOUT_S),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def post(self, path: str, body: Mapping[str, Any], *, retried: bool = True) -> Any:
        """The decoded response to `POST /api/v1<path>`, None if it is empty. Raises ServerRefused, Unreachable."""
        return self.post_for(Any, path, body, retried=retried)

    def post_once(self, path: str, body: Mapping[str, Any]) -> Any:
        """The decoded response to `POST /api/v1<path>`, which does its work again each time: it is repeated only while
        certainly nothing was done. Raises ServerRefused, which states if the outcome is unknown, and Unreachable."""
        response = self._call("POST", "/api/v1" + path, msgspec.json.encode(body), once=True)
        return self._decoded(response, Any)

    def pages(self, path: str, body: Mapping[str, Any]) -> Iterator[Any]:
        """The decoded responses to `POST /api/v1<path>` for the page at the body's cursor, if any, and all further pages."""
        while True:
            page = self.post(path, body)
            yield page
            if not page.get("nextCursor"):
                return
            body = {**body, "cursor": page["nextCursor"]}

    def create(self, body: Mapping[str, Any], kind: str = "timers") -> tuple[Any, str]:
        """The timer or schedule, and "" if something was written, else "existing" or "replayed"."""
        return self.written(f"/{kind}/create", body)

    def written(self, path: str, body: Mapping[str, Any]) -> tuple[Any, str]:
        """The decoded response to a write, and, as in `create`, whether something was written."""
        response = self._call("POST", "/api/v1" + path, msgspec.json.encode(body))
        found = [word for header, word in _FOUND.items() if response.headers.get(header) == "true"]
        return self._decoded(response, Any), "".join(found)

    def post_for(
        self, kind: Any, path: str, body: Mapping[str, Any], *, retried: bool = True, new_keys: bool = False
    ) -> Any:
        """The response to `POST /api/v1<path>`, decoded as the type `kind`. `new_keys`: no idempotency key in the body has
        been sent before, which spares the server the search for them."""
        first = _FIRST_TRY if new_keys else None
        response = self._call("POST", "/api/v1" + path, msgspec.json.encode(body), retried=retried, first=first)
        return self._decoded(response, kind) if response.content else None

    def get(self, path: str) -> Any:
        """The decoded response to `GET /api/v1<path>`. Raises ServerRefused, Unreachable."""
        return self._decoded(self._call("GET", "/api/v1" + path, None), Any)

    def text(self, path: str, *, retried: bool = True) -> str:
        """The text at `path`. Raises ServerRefused, Unreachable."""
        return self._call("GET", path, None, retried=retried).text

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, Any] | None = None
    ) -> Any:
        """The decoded response of the resource at `path`, None if it is empty. None values and empty lists in `query` are
        left out; lists repeat their parameter. The request must be idempotent, since it may be sent more than once. Raises
        ServerRefused, Unreachable."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        path = f"{path}?{parameters}" if (parameters := urlencode(given, doseq=True)) else path
        response = self._call(method, path, None if body is None else msgspec.json.encode(body))
        return self._decoded(response, Any) if response.content else None

    def _call(
        self,
        method: str,
        path: str,
        content: bytes | None,
        *,
        retried: bool = True,
        once: bool = False,
        first: dict[str, str] | None = None,
    ) -> httpx.Response:
        """`first` are headers of the first try. `once`: no repetition if the request may have been done."""
        for tries_left in range(RETRIES_MAX if retried else 0, -1, -1):
            response = self._send(method, path, content, first)
            if once and response.status_code == 503 and _code(response) not in _NOTHING_DONE:
                hint = "; it may have been done, so look before you repeat the command"
                raise self._refusal(response, hint)
            if response.status_code not in _RETRIED or not tries_left:
                break
            first = None
            time.sleep(_pause_s(response.headers.get("retry-after")))
        if response.is_success:
            if (shown := response.headers.get("tocsin-now")) is not None:
                output.server_shows(shown)
            return response
        raise self._refusal(response)

    def _send(self, method: str, path: str, content: bytes | None, headers: dict[str, str] | None) -> httpx.Response:
        try:
            return self._http.request(method, path, content=content, headers=headers)
        except httpx.TimeoutException as error:
            kind = "connection to" if isinstance(error, httpx.ConnectTimeout) else "response from"
            raise Unreachable(f"no {kind} {self.server} in time; check --server or TOCSIN_URL") from error
        except httpx.TransportError as error:
            if (untrusted := _untrusted(error)) is not None:
                raise Unreachable(
                    f"the certificate of {self.server} is refused: {untrusted.verify_message}; if an authority of your own "
                    "has issued it, name the file of its certificate in the variable SSL_CERT_FILE"
                ) from error
            raise Unreachable(
                f"can't reach {self.server}: {error}; start a server with `tocsin serve`, "
                "or give another with --server or TOCSIN_URL"
            ) from error
        except httpx.InvalidURL as error:
            raise WrongUsage(f"--server: {self.server!r} is not a URL: {error}") from error

    def _decoded(self, response: httpx.Response, kind: Any) -> Any:
        try:
            return msgspec.json.decode(response.content, type=kind)
        except msgspec.DecodeError as error:
            raise Refused(f"{self.server} did not respond with JSON; check that it is a Tocsin server") from error

    def _refusal(self, response: httpx.Response, hint: str = "") -> Refused:
        status, problem = response.status_code, _problem(response)
        if problem is None:
            return UnknownResponse(
                status,
                f"{self.server} responded {status} {response.reason_phrase}; check that it is a Tocsin server{hint}",
            )
        errors = [(str(e.get("path", "")), str(e.get("reason", ""))) for e in problem.get("errors") or []]
        detail = str(problem.get("detail") or problem.get("message") or problem.get("title") or "")
        if status == 401:
            detail += "; give a key with --key or TOCSIN_KEY; `tocsin keys create` creates one"
        return ServerRefused(status, str(problem["error"]), detail + hint, errors)


def _problem(response: httpx.Response) -> dict[str, Any] | None:
    """The server's error response; None if it is none of Tocsin's."""
    try:
        problem = msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        return None
    return problem if isinstance(problem, dict) and "error" in problem else None


def _code(response: httpx.Response) -> str | None:
    problem = _problem(response)
    return None if problem is None else str(problem["error"])


def _untrusted(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """What was wrong with the server's certificate, if that is what the error comes from."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def _pause_s(retry_after: str | None) -> float:
    try:
        return min(RETRY_AFTER_S_MAX, max(0.0, float(retry_after or RETRY_AFTER_S_DEFAULT)))
    except ValueError:
        # A date: not parsed, since the pause is bounded anyway.
        return RETRY_AFTER_S_DEFAULT
