"""Define the command line: a thin function for each command.

Heavy libraries are imported inside these functions, so that `--help` prints at once.
"""

from mclab.cli.app import main

__all__ = ["main"]
