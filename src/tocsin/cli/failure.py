"""The exit codes of commands that fail, each with its exception."""

from __future__ import annotations

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
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
