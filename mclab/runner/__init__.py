"""Skip what is stored, pack what fits together, train, store each outcome as it comes."""

from mclab.runner.eta import Ahead
from mclab.runner.execute import Progress, Start, Summary, execute

__all__ = ["Ahead", "Progress", "Start", "Summary", "execute"]
