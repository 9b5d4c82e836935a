"""How a command ends badly: the exit codes, each with its exception."""

from __future__ import annotations

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
#: What shells give to a program that SIGINT ended.
EXIT_INTERRUPTED = 130


class Failure(Exception):
    """Ends the command with `exit_code`; its text is for people, one line or several."""

    exit_code = EXIT_REFUSED


class Refused(Failure):
    """The server, the store or the timer's end said no."""


class WrongUsage(Failure):
    """What the command was told can't be meant so; nothing was done."""

    exit_code = EXIT_USAGE


class Unreachable(Failure):
    """No answer from the server; what was asked may or may not have been done."""

    exit_code = EXIT_UNREACHABLE


class Interrupted(Failure):
    """Ctrl-C, of a command that has to say how far it came."""

    exit_code = EXIT_INTERRUPTED
