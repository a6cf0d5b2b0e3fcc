"""Which runs train together as one pack, how many of them a GPU has memory for, and which packs start first."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from mclab.config.ids import shape_key
from mclab.config.options import RunOptions
from mclab.config.params import rough_parameters
from mclab.config.run import RunConfig
from mclab.plan.plan import tokens
from mclab.runner.memory import memory
from mclab.workers import Pack

#: The share of what is free that a pack may take by the estimate, which is good to a factor of two.
SHARE = 0.5
#: Replicas in a pack where the card is another machine's; a pack that does not fit is halved until it does.
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
    """Group runs of one shape, whatever cells they belong to, into packs of at most `pack` runs.

    `step` says to which step the checkpoints of a run reach, `None` where it has none: those of one step train
    together, since a pack resumes together or not at all.
    `auto` is 1 on CPU, where packing gains nothing and a kill would lose more; on CUDA it fills the workers first, and
    then the `room` that each finds free on its GPU, in bytes (see `free`).
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
    """A pack of two or more, cut in the middle."""
    middle = len(pack) // 2
    return pack[:middle], pack[middle:]


def cost(pack: Pack) -> float:
    """Training tokens times parameters: the dearest pack starts first, so that several workers end together."""
    return float(len(pack) * tokens(pack[0]) * rough_parameters(pack[0]))


def free(options: RunOptions, workers: int) -> int | None:
    """Bytes that a worker finds free on its GPU: of the fullest, shared among those that train on it. None where runs
    train on a CPU or on another machine."""
    if not options.device.startswith("cuda") or options.scheduler is not None:
        return None
    import torch

    named = options.device.partition(":")[2]
    cards = [int(named)] if named else list(range(torch.cuda.device_count()))
    if not cards:  # the training will say so
        return None
    sharing = Counter(cards[number % len(cards)] for number in range(workers))
    return min(torch.cuda.mem_get_info(card)[0] // count for card, count in sharing.items())


def fitting(run: RunConfig, room: int | None) -> int:
    """Replicas of a run that train together in so many bytes; one at least."""
    if room is None:
        return UNSEEN
    return max(1, int(SHARE * room) // memory(run).total)
