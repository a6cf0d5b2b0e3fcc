"""Run a plan: skip stored runs, train runs of one shape together as packs, and store each outcome as it arrives.

execute.py      the loop; pending.py: which runs are missing; packing.py: which of them train together
estimate.py     the time of a run from its config; history.py: from stored runs; time_range.py: the time of a command
eta.py          when all will be done, from the times so far; forecast.py: the same for a command's packs
memory.py       the memory of a run; memory_limits.py: whether runs fit into this machine
devices.py      which device; own_modules.py: tries the user's own modules first; compiling.py: `--compile auto`
"""

from mclab.runner.eta import Ahead
from mclab.runner.execute import Progress, Start, Summary, execute

__all__ = ["Ahead", "Progress", "Start", "Summary", "execute"]
