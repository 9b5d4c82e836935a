"""Options that several commands share, and the parsing of their values."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.command import WrongUsage

if TYPE_CHECKING:
    import msgspec

    from tocsin.cli.client import Client
    from tocsin.settings import Settings

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="The timers' namespace.")]
ListedNamespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="The timers' namespace; '*': all namespaces that the key has access to.",
    ),
]
ListedTenant = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        envvar="TOCSIN_TENANT",
        metavar="ID",
        help="Tenant of the calls; '*': all tenants that the key has access to.",
    ),
]
Tenant = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        envvar="TOCSIN_TENANT",
        metavar="ID",
        help="Tenant of the calls: a UUID v7; `tocsin calls new-tenant` creates one.",
    ),
]


@dataclass(frozen=True)
class ScopeOptions:
    """The namespace or, of service calls, the tenant that is meant. TOCSIN_TENANT does not choose between the two."""

    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAME",
            help="The timers' namespace; '*': all namespaces that the key has access to.",
            show_default="default",
        ),
    ] = None
    tenant: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Service calls of this tenant instead; '*': all that the key has access to."),
    ] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the request."""
        if self.tenant is None:
            return {"namespace": self.namespace or "default"}
        if self.namespace is not None:
            raise WrongUsage("--tenant cannot be combined with --namespace; give one of the two")
        return {"tenant": self.tenant}


ConfigFile = Annotated[
    Path | None, typer.Option("--config", envvar="TOCSIN_CONFIG", metavar="FILE", help="TOML file with settings.")
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help="Folder for all stored data.")]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="sqlite:///path, postgresql://…, mysql://…, dynamodb://…, mongodb://…, cassandra://… or memory://.",
    ),
]

Format = Annotated[
    str | None, typer.Option("--format", help="csv or jsonl.", show_default="by the file's name, else jsonl")
]
AgentDatabase = Annotated[
    str | None,
    typer.Option(
        "--agent-database",
        metavar="URL",
        help="Database of the service calls: sqlite:///path or postgresql://…",
        show_default="agent.db in the data folder",
    ),
]

RetryDefault = Annotated[
    bool, typer.Option("--retry-default", help="Remove the retry policy, so that the default applies.")
]


ApiKeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="TOCSIN_KEY",
        metavar="KEY",
        help="API key, if the server requires one. TOCSIN_KEY_FILE names a file with it.",
    ),
]


@dataclass(frozen=True)
class ServerOptions:
    """The server that a command calls, and the key for it."""

    server: Annotated[
        str, typer.Option(envvar="TOCSIN_URL", metavar="URL", help="URL of the server.", show_default=True)
    ] = "http://127.0.0.1:8080"
    key: ApiKeyOption = None

    def client(self, **more: Any) -> Client:
        """A client, to be closed; `more` are options of Client."""
        return client_of(self.server, self.key, **more)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The decoded response to one `POST /api/v1<path>`."""
        with self.client() as client:
            return client.post(path, body)


@dataclass(frozen=True)
class NamedServer:
    """The server that a command calls if one is named; it can do without."""

    server: Annotated[str | None, typer.Option(envvar="TOCSIN_URL", metavar="URL", help="URL of the server.")] = None
    key: ApiKeyOption = None


def client_of(server: str, key: str | None, **more: Any) -> Client:
    """A client of the server, to be closed, with the key or the one in TOCSIN_KEY_FILE; `more` are options of Client."""
    from tocsin.cli.client import Client

    if key is None and (path := os.environ.get("TOCSIN_KEY_FILE")):
        from tocsin.settings.sources import read_secret

        key = read_secret(path, "TOCSIN_KEY_FILE")
    return Client(server, key, **more)


@dataclass(frozen=True)
class TimerFilterOptions:
    """Which timers are listed."""

    namespace: ListedNamespace = "default"
    status: Annotated[
        list[str] | None,
        typer.Option(help="Only timers that are pending, completed, failed, canceled or expired; may be repeated."),
    ] = None
    id_prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="Only timers whose id has this prefix.")] = None
    tag: Annotated[list[str] | None, typer.Option(help="Only timers with this tag; may be repeated.")] = None
    after: Annotated[str | None, typer.Option(metavar="INSTANT", help="Only timers due at or after this instant.")] = (
        None
    )
    before: Annotated[str | None, typer.Option(metavar="INSTANT", help="Only timers due before this instant.")] = None
    destination: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only timers whose callback's host and path contain this text.")
    ] = None
    error: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only timers whose last error contains this text.")
    ] = None

    def query(self, *, limit: int, cursor: str | None = None) -> dict[str, Any]:
        """The request for a page of the list."""
        return given(
            namespace=self.namespace,
            status=self.status or None,
            idPrefix=self.id_prefix,
            tags=self.tag or None,
            executeAfter=checked_instant("--after", self.after),
            executeBefore=checked_instant("--before", self.before),
            destination=self.destination,
            error=self.error,
            limit=limit,
            cursor=cursor,
        )


@dataclass(frozen=True)
class CallbackOptions:
    """What a timer or schedule sends to its callback, and how."""

    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="Payload of the callback: JSON, @file, or - for stdin.")
    ] = None
    body: Annotated[
        str | None,
        typer.Option(
            metavar="CONTENT",
            help="Body of the callback, sent as is instead of a payload: text, @file (any bytes), or - for stdin.",
        ),
    ] = None
    content_type: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="Media type of --body.",
            show_default="text/plain; charset=utf-8, or application/octet-stream for other bytes",
        ),
    ] = None
    method: Annotated[str | None, typer.Option(help="The callback's HTTP method.", show_default="POST")] = None
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="'NAME: VALUE'", help="Additional header of the callback; may be repeated."
        ),
    ] = None
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Tag to filter lists by; may be repeated.")] = (
        None
    )
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Timeout of each attempt.", show_default="10")
    ] = None

    expire_after: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="No attempt begins later than this after the instant, such as 15m.",
            show_default="no limit",
        ),
    ] = None

    description: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What it is for, in one line; '' removes it.")
    ] = None

    flow_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Flow whose limits apply to it, such as customer:17; '' removes it."),
    ] = None

    credential: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Credential that its requests have, such as billing-api; '' removes it."),
    ] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the request; None for those that are not given."""
        import msgspec

        timeout = self.timeout
        return {
            "payload": None if self.payload is None else json_content("--payload", self.payload),
            "method": self.method,
            "headers": headers("--header", self.header),
            "tags": self.tag or None,
            "callbackTimeoutSeconds": int(timeout) if timeout is not None and timeout.is_integer() else timeout,
            "expireAfter": checked_duration("--expire-after", self.expire_after),
            "description": msgspec.Raw(b"null") if self.description == "" else self.description,
            "flowKey": msgspec.Raw(b"null") if self.flow_key == "" else self.flow_key,
            "credential": msgspec.Raw(b"null") if self.credential == "" else self.credential,
            "body": self._raw_body(),
        }

    def _raw_body(self) -> dict[str, str] | None:
        if self.body is None:
            if self.content_type is not None:
                raise WrongUsage("--content-type requires --body; a payload is always JSON")
            return None
        if self.payload is not None:
            raise WrongUsage("--payload and --body conflict; give only one of them")
        raw = content("--body", self.body)
        media_type = given(contentType=self.content_type)
        try:
            return {"text": raw.decode(), **media_type}
        except UnicodeDecodeError:
            import base64

            return {"base64": base64.b64encode(raw).decode(), **media_type}


@dataclass(frozen=True)
class StoreOptions:
    """The store that a command opens itself: settings by flag, and the file with the others."""

    config: ConfigFile = None
    data_dir: DataDir = None
    store: Store = None

    def settings(self, **flags: Any) -> Settings:
        """The settings, with further flags."""
        from tocsin.settings import load_settings

        return load_settings(vars(self) | flags)


@dataclass(frozen=True)
class RetryOptions:
    """The retry policy of a timer, a namespace or a call."""

    retry_attempts: Annotated[
        int | None,
        typer.Option(metavar="N", help="Maximum number of attempts, including the first.", show_default="10"),
    ] = None
    retry_for: Annotated[
        str | None, typer.Option(metavar="DURATION", help="No attempt starts later than this after the first.")
    ] = None
    retry_initial: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Delay before the second attempt.", show_default="5s")
    ] = None
    retry_factor: Annotated[
        float | None, typer.Option(metavar="X", help="Factor by which each delay grows.", show_default="3")
    ] = None
    retry_max_interval: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Maximum delay.", show_default="4h")
    ] = None

    def policy(self, *, remove: bool = False) -> dict[str, Any]:
        """The request's `retryPolicy`; empty if no option is given, null to `remove` the policy."""
        policy = given(
            maxAttempts=self.retry_attempts,
            maxAttemptsDuration=checked_duration("--retry-for", self.retry_for),
            initialInterval=checked_duration("--retry-initial", self.retry_initial),
            backoffMultiplier=self.retry_factor,
            maxInterval=checked_duration("--retry-max-interval", self.retry_max_interval),
        )
        if remove and policy:
            raise WrongUsage("--retry-default conflicts with the other --retry-… options; give only one kind")
        return {"retryPolicy": policy or None} if policy or remove else {}


@dataclass(frozen=True)
class HookOptions:
    """Who is notified of what becomes of a timer or a schedule. Those with headers are set through the API."""

    on_failure: Annotated[
        str | None, typer.Option(metavar="URL", help="Notified when it has failed, or expired; '' removes it.")
    ] = None
    on_success: Annotated[
        str | None, typer.Option(metavar="URL", help="Notified when it has succeeded; '' removes it.")
    ] = None
    on_recovery: Annotated[
        str | None, typer.Option(metavar="URL", help="Notified when it succeeds after a failure; '' removes it.")
    ] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the request, which the options are named after; None for those that are not given."""
        return {_camel(name): _hook(url) for name, url in vars(self).items()}


@dataclass(frozen=True)
class ScheduleHookOptions(HookOptions):
    """The same, with what happens to schedules only."""

    on_missed: Annotated[
        str | None, typer.Option(metavar="URL", help="Notified of a schedule's missed instants; '' removes it.")
    ] = None
    on_paused: Annotated[
        str | None, typer.Option(metavar="URL", help="Notified when a schedule pauses itself; '' removes it.")
    ] = None


@dataclass(frozen=True)
class MonitorHookOptions:
    """Who is notified of what becomes of a monitor's job."""

    on_late: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Notified when a monitor is late, or its job fails; '' removes it."),
    ] = None
    on_recovery: Annotated[
        str | None, typer.Option(metavar="URL", help="Notified when the job succeeds afterwards.")
    ] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the request; None for those that are not given. A put is the whole definition, so that what it leaves
        out is removed."""
        given = {"onLate": self.on_late, "onRecovery": self.on_recovery}
        return {name: {"url": url} if url else None for name, url in given.items()}


@dataclass(frozen=True)
class NamespaceHookOptions(ScheduleHookOptions):
    """The same, with what happens to monitors only."""

    on_late: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Notified when a monitor is late, or its job fails; '' removes it."),
    ] = None


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _hook(url: str | None) -> Any:
    import msgspec

    return msgspec.Raw(b"null") if url == "" else url and {"url": url}


@dataclass(frozen=True)
class CallHookOptions:
    """Who is notified of a call's end. Hooks with headers are set through the API."""

    on_failure: Annotated[str | None, typer.Option(metavar="URL", help="Notified when the call has failed.")] = None
    on_success: Annotated[str | None, typer.Option(metavar="URL", help="Notified when the call has succeeded.")] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the submission; None for those that are not given."""
        return {
            "onFailure": self.on_failure and {"url": self.on_failure},
            "onSuccess": self.on_success and {"url": self.on_success},
        }


def given(**fields: Any) -> dict[str, Any]:
    """The fields of a request whose option was given."""
    return {name: value for name, value in fields.items() if value is not None}


def instant_us(option: str, text: str) -> int:
    """Microseconds of an RFC 3339 instant given under `option`."""
    from tocsin.model.instants import parse_instant

    try:
        return parse_instant(text.strip())
    except ValueError as error:
        raise WrongUsage(f"{option}: {text!r} {error}") from None


def duration_us(option: str, text: str) -> int:
    """Microseconds of a duration given under `option`."""
    from tocsin.model.instants import parse_duration

    try:
        return parse_duration(text.strip())
    except ValueError as error:
        raise WrongUsage(f"{option}: {text!r} {error}") from None


def checked_instant(option: str, text: str | None) -> str | None:
    """The instant as the API takes it; None when the option wasn't given."""
    if text is None:
        return None
    from tocsin.model.instants import format_instant

    return format_instant(instant_us(option, text))


def checked_duration(option: str, text: str | None) -> str | None:
    """The duration as the API takes it; None when the option wasn't given."""
    if text is not None:
        duration_us(option, text)
    return text


@dataclass(frozen=True)
class BatchOptions:
    """How due timers of one receiver are sent together."""

    batch_max: Annotated[
        int | None, typer.Option(metavar="N", help="Send up to so many due timers of one receiver in one request.")
    ] = None
    batch_linger: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="How long the first timer of a request waits for others.", show_default="100ms"
        ),
    ] = None

    def field(self, *, remove: bool = False) -> dict[str, Any]:
        """The request's `callbackBatch`; empty if no option is given, null to `remove` it."""
        sent = given(max=self.batch_max, linger=checked_duration("--batch-linger", self.batch_linger))
        if sent and self.batch_max is None:
            raise WrongUsage("--batch-linger requires --batch-max; give both")
        if remove and sent:
            raise WrongUsage("--no-batch conflicts with --batch-max and --batch-linger; give only one kind")
        return {"callbackBatch": sent or None} if sent or remove else {}


def flow_limits(
    option: str, rate: str | None, *, burst: int | None, parallelism: int | None, ordered: bool = False
) -> dict[str, Any] | None:
    """Limits of attempts, with the rate given under `option`, such as 100/1m; None when nothing was given."""
    found = given(burst=burst, parallelism=parallelism, ordered=ordered or None)
    if rate is not None:
        count, slash, per = rate.partition("/")
        if not slash or not count.strip().isdecimal():
            raise WrongUsage(f"{option}: {rate!r} is not a rate; write it as 100/1m")
        found["rate"] = {"count": int(count), "per": checked_duration(option, per.strip())}
    return found or None


def content(option: str, text: str) -> bytes:
    """The option's value: the text itself, the content of `@file`, or standard input for `-`."""
    if text == "-":
        return sys.stdin.buffer.read()
    if text.startswith("@"):
        try:
            return Path(text[1:]).read_bytes()
        except OSError as error:
            raise WrongUsage(f"{option}: {text[1:]} can't be read: {error.strerror}") from None
    return text.encode()


def json_content(option: str, text: str) -> msgspec.Raw:
    """JSON given as text, `@file` or `-`, kept exactly as it was written."""
    import msgspec

    raw = content(option, text).strip()
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WrongUsage(f"""{option}: is not JSON ({error}); quote a plain text: '"hello"'""") from None
    return msgspec.Raw(raw)


def headers(option: str, lines: list[str] | None) -> dict[str, str] | None:
    """`Name: value` lines as a mapping; None when there are none."""
    found = {}
    for line in lines or []:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise WrongUsage(f"{option}: {line!r} is not a header; write it as 'Name: value'")
        found[name.strip()] = value.strip()
    return found or None
