"""Which parts of mclab a run uses, and the version of each part's formula.

Who changes what a part computes raises its version here. The ids of the runs that use the part change with it, and no
other run's; their records stay, load, and are never compared with those of another version.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mclab.config.model.rules import RULES

if TYPE_CHECKING:
    from mclab.config.run import RunConfig

#: Parts by axis and word, `task.niah`, `aggregate.ssc`: those whose formula has changed since ids were first made of
#: it. The version of a memory's rule stands in its row (`config/model/rules.py`).
VERSIONS: dict[str, int] = {}


def parts(run: "RunConfig") -> frozenset[str]:
    """Every part whose formula the run's result depends on: the training, its task, and what its layers are made of."""
    return frozenset(_parts(run))


def _parts(run: "RunConfig") -> Iterator[str]:
    yield from ("train", "model", f"task.{run.task.name}")
    for mixer in run.model.mixers:
        yield from mixer.parts
    if run.eval.post_training is not None:
        yield "eval.post_training"


def versions(run: "RunConfig") -> dict[str, int]:
    """The version of each part of the run that is not at its first."""
    known = {part: version_of(part) for part in sorted(parts(run))}
    return {part: version for part, version in known.items() if version != 1}


def version_of(part: str) -> int:
    """The version of a part's formula in this mclab; 1 for all that has not changed."""
    axis, _, word = part.partition(".")
    return RULES[word].version if axis == "memory" and word in RULES else VERSIONS.get(part, 1)


def compared(one: Mapping[str, int], other: Mapping[str, int]) -> str:
    """In what two mappings of parts to versions differ: `task.niah 1 and 2, aggregate.ssc 2 and 3`."""
    both = sorted({*one, *other})
    pairs = ((part, one.get(part, 1), other.get(part, 1)) for part in both)
    return ", ".join(f"{part} {mine} and {its}" for part, mine, its in pairs if mine != its)
