"""Which implementation computes what a config asks for: the one place where that is chosen. Imports no torch.

Devices, types and sizes alone decide, so what a command will use can be said before it trains, and afterwards.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple

from mclab.config.options import AUTO

if TYPE_CHECKING:
    from mclab.config.run import RunConfig

Form = Literal["torch", "triton"]


class Shape(NamedTuple):
    """Of one head: tokens of the longest sequence, and the width of its keys and values."""

    length: int
    width: int


class Choice(NamedTuple):
    """The form that computes a rule, and why it is not Triton's, empty where it is."""

    form: Form
    why_not: str = ""


@dataclass(frozen=True)
class Kernel:
    """What a Triton kernel can do: precisions (`train.precision`), and the widest head that fits on a chip."""

    precisions: tuple[str, ...]
    width: int


#: By the word of the rule; a rule without a row has no Triton kernel.
KERNELS: dict[str, Kernel] = {}
_asked = AUTO


@contextmanager
def using(kernels: str) -> Iterator[None]:
    """Within the block this process computes with these kernels, as far as it can: what `--kernels` says."""
    global _asked
    before, _asked = _asked, kernels
    try:
        yield
    finally:
        _asked = before


def asked() -> str:
    """What `using` says: auto, torch or triton."""
    return _asked


def resolve(rule: str, device: str, precision: str, shape: Shape, kernels: str | None = None) -> Choice:
    """What computes a rule (`linear`, `titans`, ...) on a device (`cuda:1`), given `--kernels`, else as `using` says.

    Never fails: where Triton was asked for and cannot be had, torch's form comes with the reason.
    """
    if (kernels or _asked) == "torch":
        return Choice("torch", "--kernels torch")
    reason = _lacks(KERNELS.get(rule), device, precision, shape)
    return Choice("torch", reason) if reason else Choice("triton")


def _lacks(kernel: Kernel | None, device: str, precision: str, shape: Shape) -> str:
    """Why a Triton kernel cannot be used; empty where it can."""
    if kernel is None:
        return "mclab has no Triton kernel for it"
    if not device.startswith("cuda"):
        return f"Triton needs a CUDA device, not {device}"
    if find_spec("triton") is None:
        return "triton is not installed"
    if precision not in kernel.precisions:
        return f"its Triton kernel does not compute in {precision}"
    if shape.width > kernel.width:
        return f"its Triton kernel takes heads up to {kernel.width} wide, not {shape.width}"
    return ""


class Costs(NamedTuple):
    """By what forms are chosen on a device. The first four are the multiply-adds that take as long."""

    turn: int
    """A turn of a loop over segments, beside its arithmetic: some ten calls into torch."""
    row: int
    """A row of a product of many small ones."""
    gather: int
    """Gathering an entry of a kept memory's matrix, forward and backward."""
    sorting: int
    """Sorting what tokens chose."""
    tokens: int
    """Tokens of a chunked memory that are read at once; fewer stay in a cache."""
    numbers: int
    """Numbers of weights that are formed at once, where every token's own are."""
    delta_chunk: int
    """Tokens in a chunk of the delta rules, on which the result does not depend."""
    sequences: int | None
    """Sequences and heads for which a form is chosen; None is those that there are."""

    few_calls: bool
    """Whether one pass more over memory costs less than a call more."""

    def folded(self, sequences: int) -> int:
        """For how many sequences and heads a form is chosen where there are so many."""
        return sequences if self.sequences is None else self.sequences


#: Measured on one core (LOG.md). Chunks of 16 are the fastest for many narrow heads (64 sequences of 256 tokens,
#: K = 16: 32 takes 1.3 times as long, 64 twice), 13 % behind 32 for a few wide ones (4 of 1024, K = 64).
_CPU = Costs(
    1_400_000, 2_000, 8, 10_000_000, tokens=512, numbers=2**17, delta_chunk=16, sequences=None, few_calls=False
)
#: Predicted, and not measured yet: an H200 multiplies and adds 3e13 times a second in fp32, and a launch takes 5 µs
#: whatever it launches, of which a turn has ten and sorting twenty. A row costs no call there, and an entry that is
#: gathered passes through a memory of 4.8e12 bytes a second three times, at four bytes. Everything is taken at once,
#: and the form is that of a batch of 64 with two heads, however many replicas a pack has: what is launched does not
#: depend on who trains beside.
_CUDA = Costs(
    1_500_000_000, 0, 75, 3_000_000_000,
    tokens=2**31, numbers=2**31, delta_chunk=64, sequences=128, few_calls=True,
)  # fmt: skip


def costs(device: str) -> Costs:
    """The costs of a device, by its type; what is not a CPU counts as CUDA: there, too, calls are launches."""
    return _CPU if device == "cpu" else _CUDA


def choices(run: "RunConfig", device: str, kernels: str | None = None) -> dict[str, Choice]:
    """What computes each rule of a run's model, by the rule's word."""
    shape = Shape(run.task.length, run.model.head_dim)
    return {rule: resolve(rule, device, run.train.precision, shape, kernels) for rule in rules_of(run)}


def rules_of(run: "RunConfig") -> list[str]:
    """The rules that the layers compute, each once, in their order: memories by their own word, others by the mixer's;
    a hybrid computes attention too."""
    found: dict[str, None] = {}
    for mixer in run.model.mixers:
        found[getattr(mixer, "memory", mixer.name)] = None
        if getattr(mixer, "hybrid", "none") != "none":
            found["attention"] = None
    return list(found)
