"""This module alone chooses the implementation that computes what a config asks for. It imports no torch.

The choice depends only on devices, types and sizes, so it is known before a command trains, and afterwards too.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple

from mclab.config.fields import is_path
from mclab.config.model import MemoryMixer
from mclab.config.options import AUTO
from mclab.kernels.launch_mode import interpreted

if TYPE_CHECKING:
    from mclab.config.run import RunConfig

Form = Literal["torch", "triton"]


class Shape(NamedTuple):
    """The size of one head: `length`, the tokens of the longest sequence, and `width`, that of its keys and values."""

    length: int
    width: int


class Choice(NamedTuple):
    """The form (Triton's or torch's) that computes a rule.

    `why_not` is the reason why it is not Triton's form, and empty if it is. `failed` is True if Triton's form was tried
    on the device and failed its self-check.
    """

    form: Form
    why_not: str = ""
    failed: bool = False


def _nothing(*about: object) -> str:
    return ""


@dataclass(frozen=True)
class Kernel:
    """What a Triton kernel can compute.

    `widths` has the widest head that fits on a chip, by precision (`train.precision`). `unfit` returns why the kernel
    cannot compute what the keys of a mixer ask for, or an empty string if it can; `slower` returns why torch's form
    costs less in a precision.
    """

    widths: Mapping[str, int]
    unfit: Callable[[MemoryMixer, Shape], str] = _nothing
    slower: Callable[[MemoryMixer, Shape, str], str] = _nothing


#: Without a gate, torch's chunked form costs less (predicted) beyond so many tokens, since the kernel is quadratic.
GATELESS = 4096
#: By precision: beyond so many tokens torch's sorted reads (sparse_read.py) of chosen segments cost less (predicted).
CHOOSING = {"fp32": 1024, "bf16": 4096}
#: By the width of a head: the most tokens in a chunk of a deep memory that a program can hold.
CHUNKS = {16: 32, 32: 16}


def _unfit_linear(mixer: MemoryMixer, shape: Shape) -> str:
    """Return why Flash-GRM or Flash-SSC cannot compute a mixer; empty if it can.

    Both weight reads by constant segments that restart.
    """
    if mixer.aggregate == "ssc":  # its kernel is given the weights, whatever they are made of
        return _cut(mixer)
    if is_path(mixer.aggregate) or is_path(mixer.read_gate):
        return "its Triton kernel cannot compute a gate or an aggregation of the user's own"
    if mixer.aggregate == "none":
        return ""
    if mixer.read_gate != "none" and mixer.gate_activation != "softmax":
        return f"its Triton kernel computes only gate_activation softmax, not {mixer.gate_activation}"
    return _cut(mixer)


def _slower_linear(mixer: MemoryMixer, shape: Shape, precision: str) -> str:
    """Return why torch's form costs less than Flash-GRM or Flash-SSC; empty if it does not."""
    if mixer.aggregate == "ssc":
        most = CHOOSING.get(precision, shape.length)
        why = f"reads all that a tile's tokens chose, and costs more beyond {most} tokens in {precision}"
    elif mixer.aggregate == "none" or mixer.read_gate == "none":
        most, why = GATELESS, f"is quadratic, and costs more without a gate beyond {GATELESS} tokens"
    else:
        return ""
    return f"its Triton kernel {why}" if shape.length > most else ""


def _cut(mixer: MemoryMixer) -> str:
    if mixer.segmentation != "constant":
        return f"its Triton kernel computes only segments of one length, not segmentation {mixer.segmentation}"
    return "" if mixer.init == "restart" else f"its Triton kernel computes only init restart, not {mixer.init}"


def _unfit_deep(mixer: MemoryMixer, shape: Shape) -> str:
    """Return why the kernel of the chunk loop cannot compute a mixer; empty if it can.

    The kernel is for two matrices.
    """
    if mixer.depth != 2:
        return f"its Triton kernel computes only depth 2, not {mixer.depth}"
    if mixer.aggregate == "soup":
        return "its Triton kernel reads each memory separately, but aggregate soup mixes their matrices"
    # Buckets of segments are memories of their own, whose chunks are as long as `chunk` says.
    whole = mixer.segmentation == "log" and mixer.aggregate != "none"
    chunk = min(mixer.chunk if whole else mixer.tokens_a_chunk, shape.length)
    most = CHUNKS[16 if shape.width <= 16 else 32]
    return (
        f"its Triton kernel computes chunks of at most {most} tokens at this width, not {chunk}" if chunk > most else ""
    )


def _unfit_erasing(mixer: MemoryMixer, shape: Shape) -> str:
    """Return why the kernel of the delta rules cannot compute a mixer; empty if it can."""
    return "its Triton kernel reads each memory separately, but aggregate soup mixes them" * (mixer.aggregate == "soup")


#: The Triton kernels by the name of the rule; a rule that is not listed has none.
KERNELS: dict[str, Kernel] = {
    "linear": Kernel({"fp32": 64, "bf16": 128}, _unfit_linear, _slower_linear),
    "titans": Kernel({"fp32": 32, "bf16": 32}, _unfit_deep),
    "dla": Kernel({"fp32": 32, "bf16": 32}, _unfit_deep),
    "delta": Kernel({"fp32": 64, "bf16": 64}, _unfit_erasing),
    "gated_delta": Kernel({"fp32": 64, "bf16": 64}, _unfit_erasing),
}
_asked = AUTO
#: By rule and device: the reason why the rule's kernel failed its self-check there, so that it is not used.
_distrusted: dict[tuple[str, str], str] = {}


@contextmanager
def using(kernels: str) -> Iterator[None]:
    """Set the kernels that this process asks for within the block; `kernels` has one of the values of `--kernels`."""
    global _asked
    before, _asked = _asked, kernels
    try:
        yield
    finally:
        _asked = before


def asked() -> str:
    """Return the kernels that `using` has set: auto, torch or triton."""
    return _asked


def resolve(
    rule: str,
    device: str,
    precision: str,
    shape: Shape,
    kernels: str | None = None,
    mixer: MemoryMixer | None = None,
) -> Choice:
    """Return the form that computes `rule` (`linear`, `titans`, ...) on `device` (`cuda:1`).

    `kernels` has one of the values of `--kernels`; None means the value that `using` has set. `mixer=None` stands for a
    mixer that the kernel can compute. It never raises: if Triton was asked for and cannot be used, it returns torch's
    form with the reason.
    """
    kernels = kernels or _asked
    if kernels == "torch":
        return Choice("torch", "--kernels torch")
    kernel = KERNELS.get(rule)
    reason = _lacks(kernel, device, precision, shape, kernels)
    if not reason and kernel is not None and mixer is not None:
        reason = kernel.unfit(mixer, shape) or kernel.slower(mixer, shape, precision)
    if not reason and (rule, _numbered(device)) in _distrusted:
        return Choice("torch", _distrusted[rule, _numbered(device)], failed=True)
    return Choice("torch", reason) if reason else Choice("triton")


def distrust(rule: str, device: str, reason: str) -> None:
    """Let torch's form compute `rule` on `device` for the rest of this process; `reason` says why."""
    _distrusted[rule, _numbered(device)] = reason


def _numbered(device: str) -> str:
    return "cuda:0" if device == "cuda" else device


def _lacks(kernel: Kernel | None, device: str, precision: str, shape: Shape, kernels: str) -> str:
    """Return why a Triton kernel cannot be used; empty if it can."""
    if kernel is None:
        return "mclab has no Triton kernel for it"
    simulated = kernels == "triton" and device == "cpu" and interpreted()
    if not device.startswith("cuda") and not simulated:
        return f"Triton needs a CUDA device, not {device}"
    if not _installed():
        return "triton is not installed"
    if simulated and precision == "bf16":
        return "Triton's interpreter does not compute in bf16"
    widest = kernel.widths.get("fp32" if simulated else precision)
    if widest is None:
        return f"its Triton kernel does not compute in {precision}"
    if shape.width > widest:
        return f"its Triton kernel computes heads of at most width {widest} in {precision}, not {shape.width}"
    return ""


@cache
def _installed() -> bool:
    return find_spec("triton") is not None


class Costs(NamedTuple):
    """The costs by which forms are chosen on a device. The first four are in multiply-adds that take the same time."""

    turn: int
    """The cost of one iteration of a loop over segments, without its arithmetic: of some ten calls into torch."""
    row: int
    """The cost of one row in a batched product of many small matrices."""
    gather: int
    """The cost of gathering one number of a kept memory's matrix, forward and backward."""
    sorting: int
    """The cost of sorting the memories that tokens chose."""
    tokens: int
    """The number of tokens of a chunked memory that are read at once; a small number of them stays in a cache."""
    numbers: int
    """The number of weights that are formed at once if every token has different weights."""
    delta_chunk: int
    """The number of tokens in a chunk of the delta rules; the result does not depend on it."""
    sequences: int | None
    """The number of sequences times heads for which a form is chosen; None means the actual number."""

    few_calls: bool
    """True if one more pass over memory costs less than one more call."""

    def folded(self, sequences: int) -> int:
        """Return `sequences`, the actual number of sequences times heads, unless a fixed number is set."""
        return sequences if self.sequences is None else self.sequences


#: Measured on one core (LOG.md). Chunks of 16 tokens are the fastest for many narrow heads (64 sequences of 256 tokens,
#: K = 16: chunks of 32 take 1.3 times as long, chunks of 64 twice as long). For a few wide heads (4 sequences of 1024
#: tokens, K = 64) they are 13 % slower than chunks of 32.
_CPU = Costs(
    1_400_000, 2_000, 8, 10_000_000, tokens=512, numbers=2**17, delta_chunk=16, sequences=None, few_calls=False
)
#: Predicted, and not measured yet: an H200 does 3e13 multiply-adds a second in fp32, and a launch takes 5 µs whatever
#: it launches; a turn has ten launches and sorting has twenty. A row costs no call there. A gathered entry, of four
#: bytes, passes three times through a memory of 4.8e12 bytes a second. Everything is computed at once, and the form is
#: that for a batch of 64 with two heads, however many replicas a pack has: so what is launched does not depend on the
#: other runs of the pack.
_CUDA = Costs(
    1_500_000_000, 0, 75, 3_000_000_000,
    tokens=2**31, numbers=2**31, delta_chunk=64, sequences=128, few_calls=True,
)  # fmt: skip


def costs(device: str) -> Costs:
    """Return the costs on a device of type `device`.

    Every device but a CPU counts as CUDA: its calls are launches too.
    """
    return _CPU if device == "cpu" else _CUDA


def choices(run: "RunConfig", device: str, kernels: str | None = None) -> dict[str, Choice]:
    """Return the `Choice` for each rule of a run's model, by the name of the rule.

    If a pattern has several layers with the same rule, and Triton cannot compute one of them, the choice for that layer
    is returned for the rule.
    """
    shape = Shape(run.task.length, run.model.head_dim)
    found = {rule: resolve(rule, device, run.train.precision, shape, kernels) for rule in rules_of(run)}
    for mixer in run.model.mixers:
        if isinstance(mixer, MemoryMixer) and found[mixer.memory].form == "triton":
            found[mixer.memory] = resolve(mixer.memory, device, run.train.precision, shape, kernels, mixer)
    return found


def rules_of(run: "RunConfig") -> list[str]:
    """Return the names of the rules that the layers compute, each once, in the order of the layers.

    The rule of a memory mixer is its memory; that of another mixer is the mixer. A hybrid computes attention too.
    """
    found: dict[str, None] = {}
    for mixer in run.model.mixers:
        found[getattr(mixer, "memory", mixer.name)] = None
        if getattr(mixer, "hybrid", "none") != "none":
            found["attention"] = None
    return list(found)
