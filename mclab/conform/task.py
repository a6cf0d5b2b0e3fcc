"""The properties that a task must have.

Each property is a function of the task's config; it returns a text that says what is wrong, or an empty text.
"""

from collections.abc import Callable

import torch

from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.task import TaskConfig
from mclab.own.found import seeded
from mclab.own.kept import other_dice
from mclab.tasks import NO_ANSWER, SPLITS, TASKS, Batch, module
from mclab.train import train_pack

#: The number of sequences in a tested batch.
COUNT = 24


def made(
    task: TaskConfig, seeds: tuple[int, ...] = (0,), split: str = "train", start: int = 0, count: int = COUNT
) -> Batch:
    """Return a batch of samples `start` to `start + count` for each seed, on the CPU."""
    return TASKS[task.name].batch(task, seeds, split, start, count, "cpu")


def alike(one: Batch, other: Batch) -> bool:
    """Return whether all tensors of two batches are equal."""
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(one, other, strict=True))


def rows(batch: Batch, first: int, end: int) -> Batch:
    """Return the sequences `first` to `end` (exclusive) of a batch."""
    return Batch(*(field[:, first:end] for field in batch))


def shape(task: TaskConfig) -> str:
    """Test that tokens have the right shape, all are in the vocabulary, and every sequence has an answer."""
    for split in SPLITS:
        batch = made(task, (0, 1), split)
        if batch.tokens.shape != (2, COUNT, task.length):
            return f"its tokens have shape {list(batch.tokens.shape)}, but must have {[2, COUNT, task.length]}"
        scored = batch.answers != NO_ANSWER
        if not scored.any(-1).all():
            return f"it asks nothing in a sequence of {split}"
        for what, values in (("token", batch.tokens), ("answer", batch.answers[scored])):
            if ((values < 0) | (values >= task.vocab)).any():
                return f"it has a {what} that is not in 0 ... {task.vocab - 1}"
    return ""


def determinism(task: TaskConfig) -> str:
    """Test that a new task gives the same samples, whatever other generators have drawn."""
    found = []
    for seed in (1, 2):
        module.made.cache_clear()
        with seeded(seed):
            other_dice()
            found.append(made(task))
    return "" if alike(*found) else "a sample is different when it is made again"


def no_state(task: TaskConfig) -> str:
    """Test that a sample is the same after others were made."""
    module.made.cache_clear()
    first = made(task)
    made(task, (5,), "test")
    return "" if alike(made(task), first) else "a sample is different after other samples were made"


def independent(task: TaskConfig) -> str:
    """Test that a sample depends on its number and not on the other samples in the batch."""
    whole = made(task)
    for at in (0, 1, COUNT - 1):
        if not alike(made(task, start=at, count=1), rows(whole, at, at + 1)):
            return f"sample {at} made alone is different from sample {at} made among {COUNT}"
    return ""


def apart(task: TaskConfig) -> str:
    """Test that no sequence is in two splits and that sequences differ.

    Different seeds must give different sequences, and the sequences of a split must not all be equal.
    """
    sets = {split: _sequences(made(task, (0, 1, 2, 3), split)) for split in SPLITS}
    if sum(map(len, sets.values())) != len(set.union(*sets.values())):
        return "a sequence is in two splits"
    for split, found in sets.items():
        if len(found) == 1:
            return f"all sequences of {split} are the same"
    if _sequences(made(task, (0,))) == _sequences(made(task, (1,))):
        return "two seeds give the same sequences"
    return ""


def _sequences(batch: Batch) -> set[tuple[int, ...]]:
    both = torch.cat((batch.tokens, batch.answers), -1).flatten(0, 1)
    return {tuple(each) for each in both.tolist()}


def pack(task: TaskConfig) -> str:
    """Test that in a batch of several seeds, each seed has the same sequences as alone."""
    both = made(task, (3, 7))
    for number, seed in enumerate((3, 7)):
        alone = made(task, (seed,))
        mine = [field[number : number + 1] for field in both]
        if not all(torch.equal(a, b) for a, b in zip(mine, alone, strict=True)):
            return f"seed {seed} has different sequences in a batch with another seed than alone"
    return ""


def trains(task: TaskConfig) -> str:
    """Test that three training steps of a small model end with status done, so that the loss is finite."""
    (outcome,) = train_pack([run_of(task)], device="cpu")
    return "" if outcome.status == "done" else f"a short training ends as {outcome.status}"


def run_of(task: TaskConfig) -> RunConfig:
    """Return the config of a run of three steps on this task."""
    run = parse_run({
        "model": {"dim": 8, "layers": 1},
        "train": {"steps": 3, "batch": 4},
        "eval": {"every": 3, "valid": 4, "test": 4},
    })  # fmt: skip
    return run.model_copy(update={"task": task})


PROPERTIES: dict[str, Callable[[TaskConfig], str]] = {
    "shape": shape,
    "determinism": determinism,
    "no state between calls": no_state,
    "batch rows independent": independent,
    "splits and seeds apart": apart,
    "pack equals single runs": pack,
    "trains": trains,
}
TRAINED = ("trains",)
