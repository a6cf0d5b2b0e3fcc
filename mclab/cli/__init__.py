"""The command line: thin verbs. Heavy libraries are imported inside the verbs, so that --help is immediate."""

from mclab.cli.app import main

__all__ = ["main"]
