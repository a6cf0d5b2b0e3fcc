"""A folder to stand in."""

from tests.cli.conftest import here  # an autouse fixture

__all__ = ["here"]
