"""Settings: `load_settings` reads them, `Settings` holds them; each part declares its own (`tocsin.model.setting`)."""

from tocsin.settings.declared import env_name, setting_name
from tocsin.settings.load import load_settings, sources, unknown_variables
from tocsin.settings.settings import Settings
from tocsin.settings.sources import Origin, Source, secret_files

__all__ = [
    "Origin",
    "Settings",
    "Source",
    "env_name",
    "load_settings",
    "secret_files",
    "setting_name",
    "sources",
    "unknown_variables",
]
