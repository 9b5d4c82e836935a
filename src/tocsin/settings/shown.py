"""The settings in force, as people read them."""

from __future__ import annotations

from tocsin.model.setting import SettingInForce
from tocsin.model.setting_values import redacted
from tocsin.settings.declared import Setting, by_topic, env_name
from tocsin.settings.settings import SECRETS, Settings


def in_force(settings: Settings) -> list[SettingInForce]:
    """Every setting, in the order in which they are listed. Passwords in URLs are redacted, secrets hidden."""
    return [
        SettingInForce(
            setting.name,
            env_name(setting.field),
            topic,
            _for_people(setting, settings),
            settings.places.get(setting.field, ""),
            setting.declaration.description,
        )
        for topic, declared in by_topic().items()
        for setting in declared
    ]


def _for_people(setting: Setting, settings: Settings) -> str:
    """The value with its unit, and a word where there is none."""
    value = setting.value(settings)
    if value is None:
        return "unset"
    if value == ():
        return "none"
    return str(setting.written(value)) if setting.counts_bytes else value_text(setting, settings)


def value_text(setting: Setting, settings: Settings) -> str:
    """The value as it is written in the environment; empty if it is unset. Sizes are numbers of bytes."""
    value = setting.value(settings)
    if value is None:
        return ""
    if setting.field in SECRETS:
        return "…"
    written = value if setting.counts_bytes else setting.written(value)
    if isinstance(written, bool):
        return "true" if written else "false"
    if isinstance(written, list):
        return ",".join(written)
    return redacted(str(written))
