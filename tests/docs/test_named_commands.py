"""Commands named in sentences exist, with their options."""

from __future__ import annotations

import re
import shlex

import typer.main

from tests.docs.blocks import ROOT, pages
from tests.support.cases import each
from tocsin.cli.app import app

COMMAND = re.compile(r"(?<!`)`((?:tocsin|make) [^`\n]+)`")
PROGRAM = typer.main.get_command(app)
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def named(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        shlex.split(command) for command in COMMAND.findall(re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S))
    ]


def unknown_parts(words):
    """The parts of a command line that do not exist: a Makefile target, a command, an option."""
    if words[0] == "make":
        return [word for word in words[1:2] if word not in TARGETS]
    command = PROGRAM
    for number, word in enumerate(words[1:], start=1):
        commands = getattr(command, "commands", None)
        if commands is None or word.startswith("-"):
            break
        if word not in commands:
            return words[: number + 1]
        command = commands[word]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    if "--" in words:
        # What follows belongs to the command that it runs.
        words = words[: words.index("--")]
    return [word for word in words if word.startswith("-") and word.partition("=")[0] not in {*options, "--help"}]


@each("page", pages())
def test_commands_in_sentences_exist(page):
    assert {" ".join(words): wrong for words in named(page) if (wrong := unknown_parts(words))} == {}


def test_unknown_commands_and_options_are_detected():
    assert unknown_parts(["tocsin", "timers", "forget"]) == ["tocsin", "timers", "forget"]
    assert unknown_parts(["tocsin", "timers", "list", "--bogus"]) == ["--bogus"]
    assert unknown_parts(["tocsin", "exec", "--bogus", "--", "sh", "-c"]) == ["--bogus"]
    assert unknown_parts(["make", "coffee"]) == ["coffee"]
    assert unknown_parts(["tocsin", "namespaces", "update", "default", "--resume"]) == []
