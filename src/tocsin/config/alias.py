"""Variables of the environment that go by other names than ours, because people know them by those."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tocsin.config.file import Entry


def _milliseconds(text: str) -> str:
    """A bare number counts milliseconds; anything else is a duration as everywhere."""
    return f"{text.strip()}ms" if text.strip().isdigit() else text


def _as_it_is(text: str) -> str:
    return text


#: By variable: the field, and how its text becomes one that the field understands. The first that is set wins.
ALIASES: dict[str, tuple[str, Callable[[str], str]]] = {
    "TIMER_POLLING_INTERVAL": ("agent_polling_interval", _milliseconds),
    "TIMER_BATCH_SIZE": ("agent_polling_batch_max", _as_it_is),
    "TIMER_DB_PATH": ("agent_database", _as_it_is),
    "DB_PATH": ("agent_database", _as_it_is),
    "TIMER_BROKER_URL": ("broker", _as_it_is),
}


def read_aliases(environment: Mapping[str, str]) -> dict[str, Entry]:
    """The fields that aliases set, each with the variable it came from."""
    found: dict[str, Entry] = {}
    for variable, (field, convert) in ALIASES.items():
        if variable in environment:
            found.setdefault(field, Entry(convert(environment[variable]), variable))
    return found


def alias_of(field: str, environment: Mapping[str, str]) -> str | None:
    """The variable that sets the field under another name, if one does."""
    entry = read_aliases(environment).get(field)
    return None if entry is None else entry.place
