"""The version, as in the package's name on the registry."""

__version__ = "0.1.0"
