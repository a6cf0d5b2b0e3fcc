"""How many runs of a shape fit on a GPU together."""

from collections import Counter

from mclab.config.options import RunOptions
from mclab.config.run import RunConfig
from mclab.runner.memory import memory

#: The share of what is free that a pack may take by the estimate, which is good to a factor of two.
SHARE = 0.5
#: Replicas in a pack where the card is another machine's; a pack that does not fit is halved until it does.
UNSEEN = 16


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
