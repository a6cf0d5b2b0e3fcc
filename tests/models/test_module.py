"""A user's own module inside the model: replicas are separate runs, and start as the module's own code says."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.models.lm import LM
from mclab.own.found import make
from mclab.replicas.parameters import initialise
from mclab.tasks import TASKS
from mclab.train.evaluate import loss_per_replica
from mclab.train.optim import schedule
from mclab.train.pack import Pack
from tests.own_modules import GOOD, own, run_of
from tests.tolerances import PACK

__all__ = ["own"]

STEPS = 20

#: Stands first in the file, so that its lines are 5, 6, ... there.
BAD = """def Picky(dim):
    raise ValueError(f"{dim} is odd")
class Bare(nn.Module):
    def __init__(self): pass
def Number(dim): return dim
size = 3
"""


def trained(runs: list[RunConfig]) -> Pack:
    pack, seeds = Pack(runs, torch.device("cpu")), [run.seed for run in runs]
    for step in range(STEPS):
        data = TASKS["mqar"].batch(runs[0].task, seeds, "train", step * 8, 8, "cpu")
        loss = loss_per_replica(pack.model(data.tokens, data.positions), data.answers)
        pack.update(loss, step + 1, schedule(step, STEPS, 0.1))
    return pack


@pytest.mark.parametrize("mixer", ["Mean", "Gru"])
def test_a_pack_is_its_runs_and_seeds_differ(own: Any, mixer: str) -> None:
    own(GOOD)
    runs = [run_of(mixer, seed=seed) for seed in (0, 1)]
    together, alone = trained(runs), [trained([run]) for run in runs]
    start = Pack(runs, torch.device("cpu")).values_RP
    for r, single in enumerate(alone):
        torch.testing.assert_close(together.values_RP[r], single.values_RP[0], atol=PACK, rtol=0)
    assert (start[0] - start[1]).abs().max() > 0.01
    moved = dict(together.model.named_parameters())
    fresh = dict(Pack(runs, torch.device("cpu")).model.named_parameters())
    for name in [name for name in moved if "mixer.own" in name]:
        assert (moved[name] != fresh[name]).flatten(1).any(1).all(), f"{name} does not learn"


def test_each_layer_and_seed_starts_from_its_own_draw_and_again_alike(own: Any) -> None:
    """Parameters and constants of a replica are those of the module, made from the replica's seed."""
    own(GOOD)
    model, again = (LM(run_of("Mean"), 2) for _ in range(2))
    before = torch.random.get_rng_state()
    initialise(model, [0, 1])
    initialise(again, [0, 1])
    assert torch.equal(before, torch.random.get_rng_state())
    held, same = dict(model.state_dict()), dict(again.state_dict())
    assert all(torch.equal(values, same[name]) for name, values in held.items())
    for name in ("inner.0.weight", "fixed"):
        first, second = (held[f"blocks.{layer}.mixer.own.{name}"] for layer in (0, 1))
        draws = [*first, *second]
        assert all(not torch.equal(a, b) for i, a in enumerate(draws) for b in draws[:i]), name


def test_what_decays_and_what_is_trained(own: Any) -> None:
    own(GOOD)
    decays = {n.partition("own.")[2]: p.decays for n, p in LM(run_of("Mean"), 1).blocks[0].mixer.named_parameters()}
    assert decays == {
        "rate": False,
        "scale": False,
        "inner.0.weight": True,
        "inner.0.bias": False,
        "inner.2.weight": True,
        "inner.2.bias": False,
    }


def test_constants_follow_the_models_type(own: Any) -> None:
    own(GOOD)
    buffers = dict(LM(run_of("Mean"), 2).double().blocks[0].mixer.own.named_buffers())
    assert {name: (values.dtype, values.shape) for name, values in buffers.items()} == {
        "fixed": (torch.float64, (2, 8)),
        "mask": (torch.bool, (2, 8)),
    }


def test_width_length_and_arguments_reach_the_module(own: Any) -> None:
    own(
        "class Kept(nn.Module):\n"
        "    def __init__(self, *given, **named):\n"
        "        super().__init__()\n"
        "        self.given = (given, named)\n"
        "class Named(Kept):\n"
        "    def __init__(self, width, *, length, dim, k=1):\n"
        "        super().__init__(width, length, dim, k)\n"
        "def built(size, bias):\n"
        "    return Kept(size, bias)\n"
    )
    made = {
        name: make(run_of(name, args=args).model.mixer, 8, 16).given
        for name, args in (("Kept", {"a": [1]}), ("Named", {"width": "x", "k": 3}), ("built", {"bias": None}))
    }
    assert made == {"Kept": ((8,), {"a": [1]}), "Named": (("x", 16, 8, 3), {}), "built": ((8, None), {})}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (
            "own_mixrs.Mean",
            (
                "model.mixer.module: there is no module own_mixrs in the current folder ({here}) or among the "
                "installed packages; did you mean own_mixers?"
            ),
        ),
        ("own_mixers.Meen", "model.mixer.module: own_mixers ({here}/own_mixers.py) has no Meen; did you mean Mean?"),
        ("torch.nnn.GRU", "model.mixer.module: there is no module nnn in torch; did you mean nn?"),
        (
            "own_broken.Mean",
            "model.mixer.module: own_broken cannot be imported: ModuleNotFoundError: "
            "No module named 'own_einops' (own_broken.py:5)",
        ),
        (
            "own_torn.Mean",
            "model.mixer.module: own_torn cannot be imported: SyntaxError: invalid syntax (own_torn.py, line 5)",
        ),
    ],
)
def test_what_cannot_be_found_is_a_line(own: Any, tmp_path: Path, path: str, line: str) -> None:
    own(GOOD)
    own("import own_einops", name="own_broken")
    own("def (:", name="own_torn")
    mixer = run_of("Mean").model.mixer.model_copy(update={"module": path})
    with pytest.raises(ConfigError) as caught:
        make(mixer, 8, 16)
    assert str(caught.value) == line.format(here=tmp_path)


@pytest.mark.parametrize(
    ("mixer", "args", "line"),
    [
        (
            "Mean",
            {"decy": 0.5},
            "model.mixer.args: own_mixers.Mean(dim, decay=0.9), called with (dim=8, decy=0.5): "
            "got an unexpected keyword argument 'decy'; did you mean decay?",
        ),
        (
            "Bare",
            {},
            "model.mixer.args: own_mixers.Bare(), called with (8): too many positional arguments",
        ),
        (
            "Mean",
            {"decay": "x"},
            "mixer own_mixers.Mean cannot be made: TypeError: full()",
        ),
        ("Picky", {}, "mixer own_mixers.Picky cannot be made: ValueError: 8 is odd (own_mixers.py:6)"),
        (
            "Number",
            {},
            "model.mixer.module: own_mixers.Number must make a torch module, but makes an object of type int",
        ),
        ("size", {}, "model.mixer.module: own_mixers.size is not a class or function"),
    ],
)
def test_what_cannot_be_made_is_a_line(own: Any, mixer: str, args: dict[str, Any], line: str) -> None:
    own(BAD + GOOD)
    with pytest.raises(ConfigError) as caught:
        make(run_of(mixer, args=args).model.mixer, 8, 16)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)
