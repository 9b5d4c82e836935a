"""Flags that name a setting without a flag of its own."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


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
