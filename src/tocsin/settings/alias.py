"""Variables of the environment without our prefix, by which earlier services of this kind are configured."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tocsin.settings.file import Entry


def _milliseconds(text: str) -> str:
    """A duration; a bare number counts milliseconds."""
    return f"{text.strip()}ms" if text.strip().isdigit() else text


def _unchanged(text: str) -> str:
    return text


#: By variable: the field, and the function that converts its text. The first variable that is set wins.
ALIASES: dict[str, tuple[str, Callable[[str], str]]] = {
    "TIMER_POLLING_INTERVAL": ("agent_polling_interval", _milliseconds),
    "TIMER_BATCH_SIZE": ("agent_polling_batch_max", _unchanged),
    "TIMER_DB_PATH": ("agent_database", _unchanged),
    "DB_PATH": ("agent_database", _unchanged),
    "TIMER_BROKER_URL": ("broker", _unchanged),
}


def read_aliases(environment: Mapping[str, str]) -> dict[str, Entry]:
    """The fields that aliases set, each with the variable it came from."""
    found: dict[str, Entry] = {}
    for variable, (field, convert) in ALIASES.items():
        if variable in environment:
            found.setdefault(field, Entry(convert(environment[variable]), variable))
    return found
