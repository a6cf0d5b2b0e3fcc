"""Which implementation computes what a config asks for: the one place where that is chosen. Imports no torch.

Devices, types and sizes alone decide, so what a command will use can be said before it trains, and afterwards.
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
    """Of one head: tokens of the longest sequence, and the width of its keys and values."""

    length: int
    width: int


class Choice(NamedTuple):
    """The form that computes a rule, and why it is not Triton's, empty where it is; `failed` where Triton's was tried
    on the device and cannot be trusted."""

    form: Form
    why_not: str = ""
    failed: bool = False


def _any_mixer(mixer: MemoryMixer, shape: Shape) -> str:
    return ""


@dataclass(frozen=True)
class Kernel:
    """What a Triton kernel can do: the widest head that fits on a chip, by precision (`train.precision`), and why it
    does not compute what a mixer's keys ask for, empty where it does."""

    widths: Mapping[str, int]
    unfit: Callable[[MemoryMixer, Shape], str] = _any_mixer


#: Without a gate the chunked form of torch costs less beyond so many tokens, predicted: the kernel is quadratic.
GATELESS = 4096
#: Tokens in a chunk of a deep memory, by the head's width, that a program can hold.
CHUNKS = {16: 32, 32: 16}


def _unfit_linear(mixer: MemoryMixer, shape: Shape) -> str:
    """Flash-GRM: what is read is weighted by constant segments that restart."""
    if is_path(mixer.aggregate) or is_path(mixer.read_gate):
        return "its Triton kernel knows no gate and no aggregation of the user's own"
    if mixer.aggregate == "none" or mixer.read_gate == "none":
        if mixer.aggregate == "ssc":
            return "its Triton kernel reads every segment, and aggregate ssc some"
        if mixer.aggregate != "none" and (mixer.init != "restart" or mixer.segmentation != "constant"):
            return _cut(mixer)
        long = shape.length > GATELESS
        return f"its Triton kernel is quadratic, and costs more without a gate beyond {GATELESS} tokens" if long else ""
    if mixer.aggregate == "ssc":
        return "its Triton kernel reads every segment, and aggregate ssc some"
    if mixer.gate_activation != "softmax":
        return f"its Triton kernel has gate_activation softmax alone, not {mixer.gate_activation}"
    return _cut(mixer)


def _cut(mixer: MemoryMixer) -> str:
    if mixer.segmentation != "constant":
        return f"its Triton kernel takes segments of one length, not segmentation {mixer.segmentation}"
    return "" if mixer.init == "restart" else f"its Triton kernel takes init restart, not {mixer.init}"


def _unfit_deep(mixer: MemoryMixer, shape: Shape) -> str:
    """The chunk loop of two matrices."""
    if mixer.depth != 2:
        return f"its Triton kernel is for depth 2, not {mixer.depth}"
    if mixer.aggregate == "soup":
        return "its Triton kernel reads each memory by itself, and aggregate soup mixes their matrices"
    # Buckets of segments are memories of their own, whose chunks are as long as `chunk` says.
    whole = mixer.segmentation == "log" and mixer.aggregate != "none"
    chunk = min(mixer.chunk if whole else mixer.tokens_a_chunk, shape.length)
    most = CHUNKS[16 if shape.width <= 16 else 32]
    return f"its Triton kernel takes chunks up to {most} at this width, not {chunk}" if chunk > most else ""


def _unfit_erasing(mixer: MemoryMixer, shape: Shape) -> str:
    """The delta rules, chunk after chunk."""
    return "its Triton kernel reads each memory by itself, and aggregate soup mixes them" * (mixer.aggregate == "soup")


#: By the word of the rule; a rule without a row has no Triton kernel.
KERNELS: dict[str, Kernel] = {
    "linear": Kernel({"fp32": 64, "bf16": 128}, _unfit_linear),
    "titans": Kernel({"fp32": 32, "bf16": 32}, _unfit_deep),
    "dla": Kernel({"fp32": 32, "bf16": 32}, _unfit_deep),
    "delta": Kernel({"fp32": 64, "bf16": 64}, _unfit_erasing),
    "gated_delta": Kernel({"fp32": 64, "bf16": 64}, _unfit_erasing),
}
_asked = AUTO
#: Why a rule's kernel is not used on a device, as was found there.
_distrusted: dict[tuple[str, str], str] = {}


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


def resolve(
    rule: str,
    device: str,
    precision: str,
    shape: Shape,
    kernels: str | None = None,
    mixer: MemoryMixer | None = None,
) -> Choice:
    """What computes a rule (`linear`, `titans`, ...) on a device (`cuda:1`), given `--kernels`, else as `using` says,
    for a mixer, else for one that the kernel can compute.

    Never fails: where Triton was asked for and cannot be had, torch's form comes with the reason.
    """
    kernels = kernels or _asked
    if kernels == "torch":
        return Choice("torch", "--kernels torch")
    kernel = KERNELS.get(rule)
    reason = _lacks(kernel, device, precision, shape, kernels)
    if not reason and kernel is not None and mixer is not None:
        reason = kernel.unfit(mixer, shape)
    if not reason and (rule, _numbered(device)) in _distrusted:
        return Choice("torch", _distrusted[rule, _numbered(device)], failed=True)
    return Choice("torch", reason) if reason else Choice("triton")


def distrust(rule: str, device: str, reason: str) -> None:
    """From now on, in this process, torch's form computes this rule on this device, for this reason."""
    _distrusted[rule, _numbered(device)] = reason


def _numbered(device: str) -> str:
    return "cuda:0" if device == "cuda" else device


def _lacks(kernel: Kernel | None, device: str, precision: str, shape: Shape, kernels: str) -> str:
    """Why a Triton kernel cannot be used; empty where it can."""
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
        return f"its Triton kernel takes heads up to {widest} wide in {precision}, not {shape.width}"
    return ""


@cache
def _installed() -> bool:
    return find_spec("triton") is not None


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
    """What computes each rule of a run's model, by the rule's word. Where a pattern has layers of one rule that differ,
    one that Triton does not compute speaks for all."""
    shape = Shape(run.task.length, run.model.head_dim)
    found = {rule: resolve(rule, device, run.train.precision, shape, kernels) for rule in rules_of(run)}
    for mixer in run.model.mixers:
        if isinstance(mixer, MemoryMixer) and found[mixer.memory].form == "triton":
            found[mixer.memory] = resolve(mixer.memory, device, run.train.precision, shape, kernels, mixer)
    return found


def rules_of(run: "RunConfig") -> list[str]:
    """The rules that the layers compute, each once, in their order: memories by their own word, others by the mixer's;
    a hybrid computes attention too."""
    found: dict[str, None] = {}
    for mixer in run.model.mixers:
        found[getattr(mixer, "memory", mixer.name)] = None
        if getattr(mixer, "hybrid", "none") != "none":
            found["attention"] = None
    return list(found)
