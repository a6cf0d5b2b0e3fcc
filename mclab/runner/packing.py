"""Which runs train together, and which packs start first."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from mclab.config.ids import shape_key
from mclab.config.params import rough_parameters
from mclab.config.run import RunConfig
from mclab.plan.plan import tokens
from mclab.runner.card import fitting
from mclab.workers import Pack


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
    then the `room` that each finds free on its GPU, in bytes (mclab.runner.card).
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
