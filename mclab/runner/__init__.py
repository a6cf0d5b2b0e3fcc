"""Skip what is stored, pack what fits together, train, store each outcome as it comes."""

from mclab.runner.execute import Progress, Start, Summary, execute

__all__ = ["Progress", "Start", "Summary", "execute"]
