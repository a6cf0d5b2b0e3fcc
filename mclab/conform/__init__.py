"""Test suites for the user's own parts, one for each kind of part. The parts of mclab itself pass them too."""

from mclab.conform.mixer import check_module
from mclab.conform.suite import Property, check, kind_of, suite

__all__ = ["Property", "check", "check_module", "kind_of", "suite"]
