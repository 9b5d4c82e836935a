"""Settings: `load_settings` reads them, `Settings` holds them, `groups` declares them."""

from tocsin.settings.load import Origin, Source, load_settings, sources, unknown_variables
from tocsin.settings.names import env_name, setting_name
from tocsin.settings.settings import Settings, secret_files

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
