"""Run a plan: skip stored runs, train runs of one shape together as packs, and store each outcome as it arrives."""

from mclab.runner.eta import Ahead
from mclab.runner.execute import Progress, Start, Summary, execute

__all__ = ["Ahead", "Progress", "Start", "Summary", "execute"]
