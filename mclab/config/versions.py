"""The parts of mclab that a run uses, and the version of each part's formula.

A developer who changes what a part computes must raise its version here. This changes the ids of exactly those runs
that use the part. Their old records stay and can be loaded, but are never compared with records of another version.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mclab.config.model.rules import RULES

if TYPE_CHECKING:
    from mclab.config.run import RunConfig

#: The version of every part whose formula has changed since the first ids. The name of a part has axis and value, e.g.
#: `task.niah` or `aggregate.ssc`. The version of a memory's rule is in `config/model/rules.py` instead.
VERSIONS: dict[str, int] = {
    # Version 1: several keys could share a value, and such a value was asked more often than others.
    "task.ar": 2,
    # Version 1: in training, too, the asked needle was at one of the tested depths, so that its place revealed it.
    "task.niah": 2,
    # Version 1: with a chunk longer than the sequence, the step size was divided by the tokens of the whole chunk, also
    # by those that did not exist. Now the canonical form has a chunk of the sequence length, so only old records have
    # this part.
    "chunk.above_length": 2,
}


def parts(run: "RunConfig") -> frozenset[str]:
    """Return the parts whose formulas the run's result depends on: the training, its task, and those of its layers."""
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
    """Return the versions of the run's parts, without parts at version 1."""
    known = {part: version_of(part) for part in sorted(parts(run))}
    return {part: version for part, version in known.items() if version != 1}


def moved_parts() -> dict[str, int]:
    """Return the versions of all parts in this version of mclab, without parts at version 1."""
    rules = {f"memory.{word}": rule.version for word, rule in RULES.items() if rule.version != 1}
    return dict(sorted({**VERSIONS, **rules}.items()))


def version_of(part: str) -> int:
    """Return the version of a part's formula in this version of mclab; 1 if the formula has never changed."""
    axis, _, word = part.partition(".")
    return RULES[word].version if axis == "memory" and word in RULES else VERSIONS.get(part, 1)


def differing(then: Mapping[str, int], now: Mapping[str, int]) -> str:
    """Return a text on the differences between two mappings of parts to versions; empty if there are none.

    An example is `version 1 of task.niah, which is 2`.
    """
    pairs = ((part, then.get(part, 1), now.get(part, 1)) for part in sorted({*then, *now}))
    return ", ".join(f"version {old} of {part}, which is {new}" for part, old, new in pairs if old != new)
