"""Commands: how they are added to the command line, and how they fail.

Options that several commands share are declared once, as fields of a dataclass. Flags that only name a setting are refused
with the setting's other names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from inspect import Parameter, signature
from typing import Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
#: Of `tocsin apply --detailed-exitcode`: something differed, and nothing went wrong.
EXIT_CHANGES = 4
#: The exit code that shells report for a program ended by SIGINT.
EXIT_INTERRUPTED = 130


class Failure(Exception):
    """Ends the command with `exit_code`; the text, of one or more lines, is for people."""

    exit_code = EXIT_REFUSED


class Refused(Failure):
    """The server or the store refused the request, or a timer or call failed."""


class WrongUsage(Failure):
    """The command's arguments are invalid; nothing was done."""

    exit_code = EXIT_USAGE


class Unreachable(Failure):
    """The server did not respond; the request may or may not have taken effect."""

    exit_code = EXIT_UNREACHABLE


class Interrupted(Failure):
    """Ctrl-C, for a command that reports its progress before it exits."""

    exit_code = EXIT_INTERRUPTED


C = TypeVar("C", bound=Callable[..., None])


def group(help: str, *, example: str) -> typer.Typer:
    """A group of commands."""
    # Plain help: importing what draws the boxes takes longer than all the rest.
    return typer.Typer(rich_markup_mode=None, no_args_is_help=True, help=help, epilog=f"Example: tocsin {example}")


def command(app: typer.Typer, name: str, *, example: str, **more: Any) -> Callable[[C], C]:
    """Decorates a function that is a command. A parameter whose type is a dataclass stands for the options that the
    dataclass's fields declare, in their order and with their defaults; the function gets the dataclass with their values."""

    def add(function: C) -> C:
        app.command(name, epilog=f"Example: tocsin {example}", **more)(_expanded(function))
        return function

    return add


@functools.cache
def _options(kind: type[Any]) -> tuple[Parameter, ...]:
    """The options that a dataclass's fields declare."""
    kinds = get_type_hints(kind, include_extras=True)
    return tuple(
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=kinds[field.name])
        for field in fields(kind)
    )


def _expanded(function: Callable[..., None]) -> Callable[..., None]:
    """The function with each option as a parameter."""
    shown = signature(function)
    hints = get_type_hints(function, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    parameters: list[Parameter] = []
    for name, parameter in shown.parameters.items():
        if name in groups:
            parameters += _options(groups[name])
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @functools.wraps(function)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        function(**given)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = shown.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


class SettingFlags(TyperCommand):
    """A command whose flags are settings. A flag that it lacks is refused with the setting's other names, if there is such
    a setting."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the arguments. Raises ConfigError for a flag that only names a setting."""
        known = {flag for parameter in self.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        for flag in (arg.partition("=")[0] for arg in args):
            if flag.startswith("--") and flag not in known:
                _refuse_setting(flag)
        return super().parse_args(ctx, args)


def _refuse_setting(flag: str) -> None:
    from tocsin.model.errors import ConfigError
    from tocsin.settings.declared import SETTINGS, env_name

    field = flag.removeprefix("--").replace("-", "_")
    if field in SETTINGS:
        raise ConfigError(f"{flag} is not a flag; set {env_name(field)}, or {SETTINGS[field].name} in the file")
