"""The one error for a user's input. Imports nothing: the command line knows it before the configs are loaded."""


class ConfigError(ValueError):
    """A user's input is wrong. The message is one line: what, where, and the nearest right thing."""
