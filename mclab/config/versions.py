"""Which parts of mclab a run uses, and the version of each part's formula.

Whoever changes what a part computes raises its version here. The ids of the runs that use the part change with it, and
of no others; their records stay, load, and are never compared with those of another version.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mclab.config.model.rules import RULES

if TYPE_CHECKING:
    from mclab.config.run import RunConfig

#: Parts by axis and name, `task.niah`, `aggregate.ssc`: those whose formula has changed since ids were first made of
#: it. The version of a memory's rule is in its row (`config/model/rules.py`).
VERSIONS: dict[str, int] = {
    # A value that several keys shared was asked more often than others.
    "task.ar": 2,
    # In training, too, the asked needle was at the depths that are tested, so that its place gave it away.
    "task.niah": 2,
    # Of a chunk longer than the sequences: the step size was divided by its tokens, also by those that did not exist.
    # Such a run is now written with the chunk that counts, so that only what was stored before has this part.
    "chunk.above_length": 2,
}


def parts(run: "RunConfig") -> frozenset[str]:
    """Every part whose formula the run's result depends on: the training, its task, and what its layers are made of."""
    return frozenset(_parts(run))


def _parts(run: "RunConfig") -> Iterator[str]:
    yield from ("train", "model", f"task.{run.task.name}")
    for mixer in run.model.mixers:
        yield from mixer.parts
    if any(mixer.fitted(run.task.length) is not mixer for mixer in run.model.mixers):
        yield "chunk.above_length"
    if run.eval.post_training is not None:
        yield from ("eval.post_training", f"eval.post_mix.{run.eval.post_mix}")


def versions(run: "RunConfig") -> dict[str, int]:
    """The version of each part of the run that is not at its first."""
    known = {part: version_of(part) for part in sorted(parts(run))}
    return {part: version for part, version in known.items() if version != 1}


def moved_parts() -> dict[str, int]:
    """Every part that is not at its first version in this mclab."""
    rules = {f"memory.{word}": rule.version for word, rule in RULES.items() if rule.version != 1}
    return dict(sorted({**VERSIONS, **rules}.items()))


def version_of(part: str) -> int:
    """The version of a part's formula in this mclab; 1 for all that has not changed."""
    axis, _, word = part.partition(".")
    return RULES[word].version if axis == "memory" and word in RULES else VERSIONS.get(part, 1)


def differing(then: Mapping[str, int], now: Mapping[str, int]) -> str:
    """Where two mappings of parts to versions differ: `version 1 of task.niah, which is 2`; empty where they do not."""
    pairs = ((part, then.get(part, 1), now.get(part, 1)) for part in sorted({*then, *now}))
    return ", ".join(f"version {old} of {part}, which is {new}" for part, old, new in pairs if old != new)
