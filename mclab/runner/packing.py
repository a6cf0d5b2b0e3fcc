"""Choose which runs train together as one pack, how many fit into a GPU's memory, and which packs start first."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from mclab.config.ids import shape_key
from mclab.config.options import RunOptions
from mclab.config.params import rough_parameters
from mclab.config.run import RunConfig
from mclab.plan.plan import tokens
from mclab.runner.memory import memory
from mclab.workers import Pack

#: The share of the free memory that a pack may take by the estimate, which is right within a factor of two.
SHARE = 0.5
#: The number of runs per pack if the GPU is in another machine, so that its memory is unknown. A pack that does not
#: fit is divided into halves.
UNSEEN = 16


def packs_of(
    runs: Iterable[RunConfig],
    pack: int | str,
    *,
    device: str,
    workers: int,
    step: Callable[[RunConfig], int | None] = lambda run: None,
    room: int | None = None,
) -> list[Pack]:
    """Group runs of one shape, from any cells, into packs of at most `pack` runs.

    `step` returns the step of a run's newest checkpoint, `None` without one. Only runs at the same step are in one
    pack, since all runs of a pack resume together. `pack="auto"` means 1 on CPU, where packing gains nothing and a kill
    would lose more. On CUDA it spreads the runs over all workers, with at most as many runs per pack as fit into
    `room`, the bytes that each worker has free on its GPU (see `free`).
    """
    alike: dict[str, dict[int | None, list[RunConfig]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        alike[shape_key(run)][step(run)].append(run)
    packs: list[Pack] = []
    for groups in alike.values():
        together = [run for group in groups.values() for run in group]
        size = _auto(together, device, workers, room) if isinstance(pack, str) else pack
        for group in groups.values():
            packs += [tuple(group[start : start + size]) for start in range(0, len(group), size)]
    return packs


def _auto(runs: Sequence[RunConfig], device: str, workers: int, room: int | None) -> int:
    return min(fitting(runs[0], room), -(-len(runs) // workers)) if device.startswith("cuda") else 1


def halves(pack: Pack) -> tuple[Pack, Pack]:
    """Return the two halves of a pack of at least two runs."""
    middle = len(pack) // 2
    return pack[:middle], pack[middle:]


def cost(pack: Pack) -> float:
    """Return the training tokens of a pack times its parameters.

    The most costly packs start first, so that workers end at about the same time.
    """
    return float(len(pack) * tokens(pack[0]) * rough_parameters(pack[0]))


def free(options: RunOptions, workers: int) -> int | None:
    """Return the free bytes of GPU memory per worker, for the worker with the least.

    The free memory of a GPU is divided among the workers that train on it. `None` if runs train on a CPU or on another
    machine.
    """
    if not options.device.startswith("cuda") or options.scheduler is not None:
        return None
    import torch

    named = options.device.partition(":")[2]
    cards = [int(named)] if named else list(range(torch.cuda.device_count()))
    if not cards:  # the training will report this error
        return None
    sharing = Counter(cards[number % len(cards)] for number in range(workers))
    return min(torch.cuda.mem_get_info(card)[0] // count for card, count in sharing.items())


def fitting(run: RunConfig, room: int | None) -> int:
    """Return how many runs of this shape can train together in `room` bytes, at least 1."""
    if room is None:
        return UNSEEN
    return max(1, int(SHARE * room) // memory(run).total)
