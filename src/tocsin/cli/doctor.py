"""`tocsin doctor` and `tocsin version`."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING

import typer

import tocsin
from tocsin.cli import output
from tocsin.cli.command import Failure, Refused
from tocsin.cli.operations import read_metrics, selected
from tocsin.cli.options import AsJson, NamedServer, StoreOptions, client_of
from tocsin.model.visible import visible

if TYPE_CHECKING:
    from tocsin.server.doctor import Finding
    from tocsin.settings import Settings

#: How long a server may take to answer a check.
_ANSWER_TIMEOUT_S = 3.0
_COLORS = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(*, server: NamedServer, store: StoreOptions, as_json: AsJson = False) -> None:
    """Check settings, disk, ports, store, clock, keys, other nodes, the inbox, the agent's database and broker and, with
    --server or TOCSIN_URL, a running server. One line for each, with what to do about it. Exit code 1 if a check fails.
    Changes nothing, and is safe while a server runs."""
    findings = []
    for finding in _findings(server, store):
        findings.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        output.print_json(
            [
                {"check": each.check, "result": each.verdict.value, "text": each.text, "mend": each.mend or None}
                for each in findings
            ]
        )
    if failed := sum(each.verdict == "fail" for each in findings):
        raise Refused(f"{failed} of {len(findings)} checks failed")


def _print(finding: Finding) -> None:
    word = typer.style(f"{finding.verdict:4}", fg=_COLORS[finding.verdict])
    mend = f"; {finding.mend}" if finding.mend else ""
    typer.echo(f"{word}  {finding.check:10}  {visible(finding.text + mend)}")


def _findings(server: NamedServer, store: StoreOptions) -> Iterator[Finding]:
    from tocsin.model.errors import ConfigError
    from tocsin.server import doctor as checks
    from tocsin.server.doctor import Finding, Verdict

    yield Finding("versions", Verdict.OK, _versions())
    try:
        settings = store.settings()
    except ConfigError as error:
        for line in str(error).splitlines():
            yield Finding("settings", Verdict.FAIL, line, "docs/reference/settings.md lists all")
    else:
        yield from checks.check_settings(vars(store))
        yield from checks.check_disk(settings)
        yield from checks.check_ports(settings, _ours(settings))
        yield from _store(settings)
    if server.server is not None:
        yield from _server(server.server, server.key)


def _versions() -> str:
    import apsw

    from tocsin.build_info import short_commit

    build = f" ({commit})" if (commit := short_commit()) else ""
    return f"Tocsin {tocsin.__version__}{build}, Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"


def _store(settings: Settings) -> list[Finding]:
    import asyncio

    from tocsin.server.doctor import check_agent, check_inbox, check_store, check_targets

    async def found() -> list[Finding]:
        checks = (check_store, check_targets, check_inbox, check_agent)
        return [finding for check in checks async for finding in check(settings)]

    return asyncio.run(found())


def _ours(settings: Settings) -> str | None:
    """The URL of the Tocsin that has the port, None if none has it."""
    from tocsin.server.sockets import url_of

    url = url_of({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host), settings.port)
    with contextlib.suppress(Failure), client_of(url, None, answer_timeout_s=_ANSWER_TIMEOUT_S) as client:
        if client.text("/healthz") == '{"status":"ok"}':
            return url
    return None


def _server(url: str, key: str | None) -> Iterator[Finding]:
    """The server named by the options: is it ready, which version, does the key read its metrics?"""
    from tocsin.cli.client import ServerRefused, UnknownResponse
    from tocsin.server.doctor import Finding, Verdict

    with client_of(url, key, answer_timeout_s=_ANSWER_TIMEOUT_S) as client:
        known = True
        try:
            known = client.text("/readyz", retried=False).startswith('{"status":"ready"')
        except ServerRefused as error:
            yield Finding(
                "server", Verdict.FAIL, f"{url} is not ready: {error}", "docs/runbooks has a page for each reason"
            )
        except Failure as error:
            yield Finding(
                "server", Verdict.FAIL, str(error), "start it, or correct --server: host, port and certificate"
            )
            return
        else:
            yield Finding("server", Verdict.OK, f"{url} is ready")
        try:
            build = selected(read_metrics(client), ["tocsin_build_info"])[0]
        except Failure as error:
            if known and isinstance(error, UnknownResponse) and error.status == HTTPStatus.NOT_FOUND:
                mend = "a proxy may hide it: ask a node"
                yield Finding("metrics", Verdict.WARN, f"{url}/metrics responded 404", mend)
                return
            yield Finding("metrics", Verdict.FAIL, str(error), "give a key that it knows with --key or TOCSIN_KEY")
        else:
            yield Finding("metrics", Verdict.OK, " ".join(build))


def version(as_json: AsJson = False) -> None:
    """Show the version of Tocsin and the commit it was built from, and the versions of Python and SQLite."""
    from tocsin.build_info import versions, versions_text

    if as_json:
        output.print_json(versions())
        return
    # Without a table: importing what draws one takes longer than all the rest.
    output.print_plain(versions_text())
