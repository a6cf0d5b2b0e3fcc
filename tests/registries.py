"""The words of every axis, read from what computes them: a suite over an axis covers whatever is registered in it.

A suite makes its axes in a function that calls `words`, so that a test can register a part more and see it picked up.
"""

from collections.abc import Callable, Collection
from typing import get_args

from mclab.caching.activation import ACTIVATIONS
from mclab.caching.aggregate import AGGREGATES
from mclab.caching.connector import CONNECTORS
from mclab.caching.gate import GATES
from mclab.caching.init import INITS
from mclab.caching.pool import POOLS
from mclab.caching.route import ROUTES
from mclab.caching.segment import SEGMENTS
from mclab.config.model import RULES
from mclab.config.model import memory as config
from mclab.config.task import TASKS
from mclab.models.hybrid import HYBRIDS
from mclab.models.mixers import MIXERS

#: By axis. Four axes have no registry: the code that knows their words asks for them one by one, and the config's
#: Literal is the list.
REGISTRIES: dict[str, Callable[[], Collection[str]]] = {
    "memory": lambda: RULES,
    "aggregate": lambda: AGGREGATES,
    "gate": lambda: GATES,
    "gate_activation": lambda: ACTIVATIONS,
    "connector": lambda: CONNECTORS,
    "init": lambda: INITS,
    "pool": lambda: POOLS,
    "pool_of": lambda: get_args(config.PoolOf),
    "route": lambda: ROUTES,
    "segmentation": lambda: SEGMENTS,
    "decay_to": lambda: get_args(config.DecayTo),
    "memory_norm": lambda: get_args(config.MemoryNorm),
    "hybrid": lambda: HYBRIDS,
    "mixer": lambda: MIXERS,
    "task": lambda: TASKS,
}


def words(axis: str, but: Collection[str] = ()) -> list[str]:
    """The words of an axis as they are now, in their order, without those that a suite has to leave out."""
    return [word for word in REGISTRIES[axis]() if word not in but]


def axes(*names: str) -> dict[str, list[str]]:
    """Several axes, each with all its words."""
    return {name: words(name) for name in names}
