"""Settings: `load_settings` reads them, `Settings` holds them. The names and their rules are in `settings`."""

from tocsin.config.load import Origin, Source, load_settings, sources, unknown_variables
from tocsin.config.settings import Settings, env_name, setting_name

__all__ = ["Origin", "Settings", "Source", "env_name", "load_settings", "setting_name", "sources", "unknown_variables"]
