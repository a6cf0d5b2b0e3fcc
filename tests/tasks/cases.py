"""The configs that every rule of all tasks is tested with: each task's default, and what is special to it."""

import tempfile
from pathlib import Path

from mclab.config.task import TASKS, ArTask, FactsTask, ModuleTask, MqarTask, NiahTask, TaskConfig, TextTask
from mclab.config.task.niah import PRESETS
from mclab.tasks import NO_ANSWER, Batch
from mclab.tasks import TASKS as MAKERS

#: Tasks whose answers do not stand in the sequence: what is right is known from training alone.
OUTSIDE = ("text", "facts", "module")


def corpus() -> str:
    """A file that holds the same text everywhere: numbered lines."""
    path = Path(tempfile.gettempdir()) / "mclab-test-corpus.txt"
    text = "".join(f"{n} {n * n % 9973:x} {n * 7919 % 104729}\n" for n in range(4000)).encode()
    if not path.exists() or path.read_bytes() != text:
        path.write_bytes(text)
    return str(path)


def cases() -> dict[str, TaskConfig]:
    """Every task that is registered, at its defaults, and those beside."""
    return {
        **{name: config() for name, config in TASKS.items() if name != "module"},
        "module": ModuleTask(module="tests.own.parts.copy", vocab=16, length=16),
        "mqar random": MqarTask(filler="random", spread="uniform"),
        "mqar wide": MqarTask(vocab=1000, pairs=(3, 16), filler="random"),
        "mqar small": MqarTask(vocab=6, length=8, pairs=(1, 2)),
        "ar answer": ArTask(vocab=64, length=64, loss="answer"),
        "ar small": ArTask(vocab=6, length=6),
        **{preset: NiahTask(preset=preset, vocab=100, length=400) for preset in PRESETS},
        "text file": TextTask(corpus=corpus(), length=33),
        "facts few": FactsTask(facts=5, vocab=10, length=6),
        "niah least": NiahTask(length=18),
        "mk3 least": NiahTask(preset="mk3", length=328),
        "mq least": NiahTask(preset="mq", length=75),
        "niah depth": NiahTask(preset="niah2", length=90, depth=(37,)),
        "niah all": NiahTask(length=520, haystack="needles", key="uuid", values=2, needles=3, asked=2, depth=(10, 90)),
        "niah full": NiahTask(preset="mv", vocab=43, length=200, haystack="noise", needles=3, asked=2, values=3),
    }


CASES = cases()


def make(name: str, seeds=(0,), split="train", start=0, count=8, device="cpu") -> Batch:
    return MAKERS[CASES[name].name].batch(CASES[name], seeds, split, start, count, device)


def sequences(batch: Batch):
    """Each sequence as plain values: tokens, what is wanted where, and the number of its slice."""
    flat = (tensor.flatten(0, 1).tolist() for tensor in batch[:4])
    for tokens, positions, answers, which in zip(*flat, strict=True):
        yield tokens, {p: a for p, a in zip(positions, answers, strict=True) if a != NO_ANSWER}, which
