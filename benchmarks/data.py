"""How fast the data is: `python -m benchmarks.data [rows of a block] [repeats]`.

Both sides make blocks of mqar sequences on one thread, by turns of 1024 sequences, so that a busy machine hits them
alike and neither is charged for the other's traces in the caches more than once a turn.
The other side is the published way of making this task: numpy's `choice` without replacement, row by row, for the
keys, for the values and for the slots. Then the cost of the default training data, as a share of a training step.
"""

import sys
from functools import partial

import numpy as np
import torch

from benchmarks.timing import compare, spread
from mclab.config.task import MqarTask
from mclab.tasks import TASKS

SHAPES = ((64, 4, 40), (256, 64, 8), (1024, 128, 5))
"""Tokens, pairs, and how many times faster than the published way the data has to be."""
VOCAB, TURN = 8192, 1024
BATCH, STEPS, STEP_MS = 64, 16, 40.0
"""The default training batch, how many of them one call makes, and what a training step costs on one thread."""


def published(length: int, pairs: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """[rows, length] tokens and answers (-100 where nothing is wanted), every row's draws by `np.random.choice`."""
    half, slots = VOCAB // 2, length // 2 - pairs
    weights = 0.01 * np.arange(1, slots + 1) ** (0.01 - 1)

    def per_row(pool: np.ndarray, **options: np.ndarray) -> np.ndarray:
        table = np.tile(pool, (rows, 1))
        return np.apply_along_axis(np.random.choice, 1, table, size=pairs, replace=False, **options)

    keys, values = per_row(np.arange(1, half)), per_row(np.arange(half, VOCAB))
    places = 2 * pairs + 2 * per_row(np.arange(slots), p=weights / weights.sum())
    tokens, answers = np.zeros((rows, length), np.int64), np.full((rows, length), -100)
    tokens[:, 0 : 2 * pairs : 2], tokens[:, 1 : 2 * pairs : 2] = keys, values
    np.put_along_axis(tokens, places, keys, axis=1)
    np.put_along_axis(answers, places, values, axis=1)
    return tokens, answers


def main(rows: int = 1024, repeats: int = 9) -> None:
    torch.set_num_threads(1)
    make = TASKS["mqar"].batch
    print(f"vocab {VOCAB}, blocks of {rows}, one thread; microseconds per sequence, min / median / max of {repeats}")
    print(f"{'length pairs':>12}  {'published':>30}  {'mclab':>30}  {'ratio of medians':>16}  wanted")
    for length, pairs, wanted in SHAPES:
        config = MqarTask(vocab=VOCAB, length=length, pairs=(pairs,))
        starts = range(0, max(TURN, rows), rows)
        sides = (
            lambda length=length, pairs=pairs, starts=starts: [published(length, pairs, rows) for _ in starts],
            lambda config=config, starts=starts: [make(config, [0], "train", start, rows, "cpu") for start in starts],
        )
        theirs, ours = compare(sides, repeats)
        ratio = theirs[repeats // 2] / ours[repeats // 2]
        unit = 1e6 / rows / len(starts)
        print(f"{length:>6}{pairs:>6}  {spread(theirs, unit)}  {spread(ours, unit)}  {ratio:>15.1f}x  {wanted:>5}x")
    for label, config in (("default task", MqarTask()), ("2 pairs, split by hash", MqarTask(pairs=(2,)))):
        (times,) = compare((partial(make, config, [0], "train", 0, BATCH * STEPS, "cpu"),), repeats)
        share = times[repeats // 2] / STEPS * 1e3 / STEP_MS
        cost = f"{spread(times, 1e3 / STEPS)}, {share:.2%} of a {STEP_MS:.0f} ms step"
        print(f"{label}, {STEPS} batches of {BATCH} a call: ms per batch {cost}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
