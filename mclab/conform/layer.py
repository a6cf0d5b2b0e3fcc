"""The properties that a rule, a gate or an aggregation must have.

They are tested in a small caching layer and in two short training runs. Each property is a function of a `Case`. It
returns a text that says what is wrong, or an empty text. Shapes: R replicas, B batch, T time, D model width.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mclab.caching.layer import CachingLayer
from mclab.caching.recurrent import recurrent
from mclab.config.model import MemoryMixer
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.memories.own import chunks_up_to
from mclab.own.found import seeded
from mclab.own.kept import other_dice
from mclab.replicas.parameters import initialise
from mclab.train import train_pack

#: The sizes of a small layer that has all special cases: a shorter last segment, two heads, two replicas, two rows.
DIM, HEADS, REPLICAS, ROWS, LENGTH = 8, 2, 2, 2, 13
#: The number of tokens in each call of a rule's `write`. It is less than a segment, so that the rule must continue
#: from a state that it wrote itself.
CARRIED = 3
#: Smaller differences, relative to the largest value, are rounding errors: values are fp64 sums of a few hundred
#: terms.
SAME = 1e-9
#: For the test of gradients: the step of the finite difference, and the largest relative error of the slope.
STEP, SLOPE = 1e-5, 1e-5
#: The largest difference in loss between a pack and its single runs, in fp64; and between bf16 and fp32, after three
#: steps.
PACK, BF16 = 1e-9, 0.2


@dataclass(frozen=True)
class Case:
    """A memory mixer that contains the part to test; `axis` is the part's axis."""

    axis: str
    mixer: MemoryMixer

    def layer(self, replicas: int = REPLICAS, seeds: tuple[int, ...] = (0, 1), **changes: Any) -> CachingLayer:
        """Return a layer in fp64 with one replica per seed, where the keys of the mixer are changed by `changes`.

        Noise is added to every initial parameter, since some initial values (such as zero) hide errors.
        """
        layer = CachingLayer(replicas, DIM, HEADS, LENGTH, self.mixer.model_copy(update=changes))
        initialise(layer, seeds)
        layer = layer.double()
        for name, value in sorted(layer.named_parameters()):
            for replica, seed in enumerate(seeds):
                dice = torch.Generator().manual_seed(len(name) + 1000 * seed)
                shift = 0.1 * torch.randn(value.shape[1:], generator=dice, dtype=torch.float64)
                value.data[replica] += shift
        return layer

    @property
    def told(self) -> str:
        """The name or the dotted path of the part."""
        return str(getattr(self.mixer, self.axis))


def inputs(seed: int = 0, length: int = LENGTH, replicas: int = REPLICAS) -> list[Tensor]:
    """Return random x, q, k, v, each [R, B, T, D]. Queries and keys have about unit length, as in a model."""
    dice = torch.Generator().manual_seed(seed)
    shape = (replicas, ROWS, length, DIM)
    return [scale * torch.randn(shape, generator=dice, dtype=torch.float64) for scale in (1.0, 0.35, 0.35, 1.0)]


def differs(found: Tensor, wanted: Tensor, least: float = SAME) -> bool:
    """Return whether two tensors differ by more than rounding (`least`, relative to the largest value).

    NaN always differs.
    """
    return not bool(((found - wanted).abs() <= least * (1 + wanted.abs().max())).all())


def shape(case: Case) -> str:
    """Test that the output has the shape [R, B, T, D] and the dtype of the input and is finite, also for one token."""
    for length in (LENGTH, 1):
        given = inputs(length=length)
        y = case.layer()(*given)
        if y.shape != given[0].shape:
            return f"its output has shape {list(y.shape)}, but its input has {list(given[0].shape)}"
        if y.dtype != given[0].dtype:
            return f"its output has dtype {y.dtype}, but its input has {given[0].dtype}"
        if not y.isfinite().all():
            return f"its output has NaN or inf for normal inputs of length {length}"
    return ""


def determinism(case: Case) -> str:
    """Test that a new layer from the same seeds gives the same output, whatever other generators have drawn."""
    found = []
    for seed in (1, 2):
        with seeded(seed):
            other_dice()
            found.append(case.layer()(*inputs()))
    return "" if torch.equal(*found) else "the same seeds and the same input give different outputs"


def no_state(case: Case) -> str:
    """Test that an input gives the same output again after another input."""
    layer = case.layer()
    first = layer(*inputs())
    layer(*inputs(1))
    return (
        ""
        if torch.equal(layer(*inputs()), first)
        else "the same input gives a different output after a call with another input"
    )


def causality(case: Case) -> str:
    """Test that changing a token changes no earlier output."""
    layer, given, other = case.layer(), inputs(), inputs(1)
    before = layer(*given)
    for t in range(1, LENGTH):
        changed = [
            torch.cat((a[:, :, :t], b[:, :, t : t + 1], a[:, :, t + 1 :]), 2) for a, b in zip(given, other, strict=True)
        ]
        after = layer(*changed)
        for place in range(t):
            if differs(after[:, :, place], before[:, :, place]):
                return f"changing token {t} changed its output at token {place}"
    return ""


def rows(case: Case) -> str:
    """Test that changing a sequence of the batch changes no other sequence's output."""
    layer, given, other = case.layer(), inputs(), inputs(1)
    changed = [torch.cat((a[:, :1], b[:, 1:]), 1) for a, b in zip(given, other, strict=True)]
    return "changing row 1 changed the output of row 0" if differs(layer(*changed)[:, :1], layer(*given)[:, :1]) else ""


def fast_is_step(case: Case) -> str:
    """Test that the layer has the outputs and gradients of its definition, a loop over tokens.

    This is tested for every way to cut segments and to start them.
    """
    for changes in _ways(case):
        layer = case.layer(**changes)
        given = [z.requires_grad_() for z in inputs()]
        x, q, k, v = given
        with chunks_up_to(CARRIED):
            pair = layer(x, q, k, v), recurrent(layer, x, q, k, v)
        where = ", ".join(f"{key} {value}" for key, value in changes.items())
        if differs(*pair):
            t = next(t for t in range(LENGTH) if differs(pair[0][:, :, t], pair[1][:, :, t]))
            return f"its output differs from the loop of steps at token {t} ({where})"
        sources = [*given, *layer.parameters()]
        upstream = inputs(2)[0]
        grads = [torch.autograd.grad(y, sources, upstream, allow_unused=True, materialize_grads=True) for y in pair]
        if any(differs(a, b) for a, b in zip(*grads, strict=True)):
            return f"its gradients differ from those of the loop of steps ({where})"
    return ""


def _ways(case: Case) -> Iterator[dict[str, Any]]:
    yield {"segmentation": "constant", "init": "restart"}
    yield {"segmentation": "log", "init": "restart"}
    yield {"segmentation": "constant", "init": "checkpoint"}
    if case.axis != "aggregate":
        yield {"aggregate": "soup" if case.axis == "memory" and not case.mixer.deep else "ssc"}


def state_passing(case: Case) -> str:
    """Test that a rule needs only its state to continue: a sequence in two pieces gives the same as the whole sequence.

    For other parts, test that the outputs of the first tokens do not depend on the length of the sequence.
    """
    given, cut = inputs(), 6
    if case.axis != "memory":
        layer = case.layer()
        whole, part = layer(*given), layer(*(z[:, :, :cut] for z in given))
        return (
            "the outputs of the first tokens are different if more tokens follow"
            if differs(whole[:, :, :cut], part)
            else ""
        )
    whole, pieces = (_stepped(case, given, cuts) for cuts in ((), (cut,)))
    if (t := next((t for t in range(LENGTH) if differs(pieces[:, t], whole[:, t])), None)) is not None:
        return f"going on from its state after token {cut - 1} gives a different output at token {t}"
    return ""


def _stepped(case: Case, given: list[Tensor], cuts: tuple[int, ...]) -> Tensor:
    """Return a rule's reads of all tokens, step by step, stacked along axis 1.

    At each token in `cuts` the rule is made anew and continues from the state alone.
    """
    layer = case.layer(aggregate="none")
    q, k, v = (layer._fold(z) for z in given[1:])
    memory, reads = layer.memory, []
    tokens = memory.tokens(given[0], k, v)
    state = memory.begin(memory.initial(tokens))
    for t in range(LENGTH):
        if t in cuts:
            memory = case.layer(aggregate="none").memory
        state = memory.step(state, tokens.at(t))
        reads.append(memory.read(state, q[:, t]))
    return torch.stack(reads, 1)


def gradients(case: Case) -> str:
    """Test that every parameter gets a gradient, and that the gradient of the inputs is right.

    It must equal the slope of the output along a random direction, measured by finite differences.
    """
    layer, upstream = case.layer(), inputs(2)[0]
    sources = {**{f"parameter {name}": value for name, value in layer.named_parameters()}}
    given = [z.requires_grad_() for z in inputs()]
    y = layer(*given)
    if not y.requires_grad:
        return "it passes no gradient on, because its output is cut off from its input"
    found = torch.autograd.grad(y, [*sources.values(), *given], upstream, allow_unused=True)
    for name, grad in zip(sources, found, strict=False):
        if grad is None or not grad.any():
            return f"no gradient reaches {name.replace('part.own.', '')}"
    directions = inputs(3)
    slope = sum((g * d).sum() for g, d in zip(found[len(sources) :], directions, strict=True) if g is not None)
    with torch.no_grad():
        ends = [layer(*(z + sign * STEP * d for z, d in zip(given, directions, strict=True))) for sign in (1, -1)]
    measured = ((ends[0] - ends[1]) * upstream).sum() / (2 * STEP)
    off = abs(float(measured - slope)) / (1 + abs(float(measured)))
    return (
        (
            f"the slope is {float(slope):.6g} by its gradient, but {float(measured):.6g} by its outputs; find what "
            "cuts the gradient"
        )
        if off > SLOPE
        else ""
    )


def pack(case: Case) -> str:
    """Test that two runs in one pack have the same losses as each run alone."""
    runs = [run_of(case, seed, "fp64") for seed in (0, 1)]
    losses = [[point["loss"] for point in outcome.curve] for outcome in train_pack(runs, device="cpu")]
    for number, run in enumerate(runs):
        (alone,) = train_pack([run], device="cpu")
        if any(not abs(a - point["loss"]) <= PACK for a, point in zip(losses[number], alone.curve, strict=True)):
            return f"seed {number} has a different loss in a pack of two than alone"
    return ""


def bf16(case: Case) -> str:
    """Test that three steps in bf16 stay finite and near those in fp32."""
    found = []
    for precision in ("bf16", "fp32"):
        (outcome,) = train_pack([run_of(case, 0, precision)], device="cpu")
        if outcome.status != "done":
            return f"a training in {precision} ends as {outcome.status}"
        found.append(outcome.curve[-1]["loss"])
    return (
        f"its loss is {found[0]:.3f} in bf16, but {found[1]:.3f} in fp32"
        if not abs(found[0] - found[1]) <= BF16
        else ""
    )


def run_of(case: Case, seed: int, precision: str) -> RunConfig:
    """Return the config of a run of three steps with the mixer of `case`."""
    task = {"vocab": 16, "length": 14, "pairs": [2]}
    model = {"dim": DIM, "layers": 1, "heads": HEADS}
    train = {"steps": 3, "batch": 4, "precision": precision, "warmup": 0.0}
    looks = {"every": 1, "valid": 4, "test": 4}
    run = parse_run({"seed": seed, "task": task, "model": model, "train": train, "eval": looks})
    return run.model_copy(update={"model": run.model.model_copy(update={"mixer": case.mixer})})


#: The properties in the order of the tests: an error in an earlier one often explains errors in later ones.
PROPERTIES: dict[str, Callable[[Case], str]] = {
    "shape": shape,
    "determinism": determinism,
    "no state between calls": no_state,
    "causality": causality,
    "batch rows independent": rows,
    "state passing": state_passing,
    "fast equals step": fast_is_step,
    "gradients": gradients,
    "pack equals single runs": pack,
    "bf16": bf16,
}
#: The properties whose test trains. All others are tested before each command that trains with the part.
TRAINED = ("pack equals single runs", "bf16")
