"""What a part of the user's own must keep to: the suites that mclab's own parts pass, one for each kind of part."""

from mclab.conform.mixer import check_module
from mclab.conform.suite import Property, check, kind_of, suite

__all__ = ["Property", "check", "check_module", "kind_of", "suite"]
