"""What a user's own mixer must keep to: good ones pass, each fault is one line that says what and where."""

import sys
from typing import Any

import pytest
import torch

from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.conform import check, check_module
from tests.own_modules import GOOD, own, run_of

__all__ = ["own"]

MIXER = """
class Base(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inner = nn.Linear(dim, dim)
"""


def fault(run: RunConfig) -> str:
    with pytest.raises(ConfigError) as caught:
        check_module(run)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("mixer", ["Mean", "Gru", "Zero", "Single", "Loop"])
def test_causal_mixers_pass(own: Any, mixer: str) -> None:
    own(
        GOOD
        + MIXER
        + """
class Zero(Base):
    "Its last projection starts at zero, so that no gradient passes it yet."
    def __init__(self, dim):
        super().__init__(dim)
        self.outer = nn.Linear(dim, dim)
        nn.init.zeros_(self.outer.weight)
    def forward(self, x):
        return self.outer(self.inner(x.cumsum(1)))
class Single(Base):
    "Works in fp32 alone."
    def forward(self, x):
        assert x.dtype == torch.float32, "fp32 alone"
        return self.inner(x.cumsum(1)).softmax(-1)
class Loop(Base):
    def forward(self, x):
        state, out = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            state = torch.tanh(self.inner(state) + x[:, t])
            out.append(state)
        return torch.stack(out, 1)
"""
    )
    before = torch.random.get_rng_state()
    check_module(run_of(mixer, train={"precision": "fp32"}))
    assert torch.equal(before, torch.random.get_rng_state())


def test_other_mixers_and_repeated_ones_cost_nothing(own: Any) -> None:
    """Nothing is imported for a run without a module; runs that share one are looked at once."""
    own(GOOD + "made = []\ndef build(dim):\n    made.append(dim)\n    return Mean(dim)\n")
    check([RunConfig()])
    assert "own_mixers" not in sys.modules
    check([run_of("build", seed=0)])
    once = len(sys.modules["own_mixers"].made)
    check([run_of("build", seed=seed) for seed in range(5)])
    assert len(sys.modules["own_mixers"].made) == 2 * once


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("return self.inner(x.flip(1))", "is not causal: changing token 8 changed its output at token 7"),
        (
            "return self.inner(x) + x.mean(1, keepdim=True)",
            "is not causal: changing token 1 changed its output at token 0",
        ),
        (
            "return self.inner(F.pad(x, (0, 0, 0, 3))[:, 3:])",
            "is not causal: changing token 3 changed its output at token 0",
        ),
        (
            "return self.inner(x.unflatten(1, (-1, 4)).cumsum(2).flip(2).flatten(1, 2) if x.shape[1] % 4 == 0 else x)",
            "is not causal: changing token 1 changed its output at token 0",
        ),
        (
            "y = self.inner(x).clone(); y[:, 2] = y[:, 2] + (x[:, -1] if x.shape[1] > 3 else 0); return y",
            "is not causal: changing token 15 changed its output at token 2",
        ),
        (
            "return self.inner(x) + x.cumsum(1).mean(0)",
            "mixes the rows of a batch: changing row 1 changed the output of row 0",
        ),
        (
            "return self.inner(x)[..., :3]",
            "returns shape [2, 16, 3] for an input of shape [2, 16, 8]; it must keep [B, T, D]",
        ),
        ("return self.inner(x), x", "returns a tuple; it must return one tensor [B, T, D]"),
        (
            "return self.inner(x.float()).float() if x.dtype == torch.float32 else self.inner(x).float()",
            "returns float32 for an input in float64; it must keep the dtype",
        ),
        ("return self.inner(x).log()", "returns NaN or inf for normal inputs of length 16"),
        (
            "return F.dropout(self.inner(x), 0.5)",
            "is random: the same input gives different outputs (dropout? set it to 0)",
        ),
        ("x.mul_(2); return self.inner(x)", "writes into its input; make a copy of it first"),
        (
            "self.inner.bias.data += 1; return self.inner(x)",
            "keeps state in parameter inner.bias, which a call changes",
        ),
        (
            "self.last = getattr(self, 'last', 0) + 1; return self.inner(x) * self.last",
            "keeps state: the same input gives a different output after a call with another input",
        ),
        ("return x.cumsum(1)", "has the parameter inner.weight, which no gradient reaches; use it or remove it"),
        ("return self.inner(x).detach()", "passes no gradient on, because its output is cut off from its input"),
        ("return self.inner(x[:, :, :4])", "fails on an input of shape [2, 16, 8]: RuntimeError: "),
    ],
)
def test_each_fault_is_a_line(own: Any, body: str, line: str) -> None:
    own(MIXER + f"class Mixer(Base):\n    def forward(self, x):\n        {body}\n")
    said = fault(run_of("Mixer"))
    assert said.startswith(f"mixer own_mixers.Mixer {line}")


def test_state_in_a_buffer_is_named(own: Any) -> None:
    own(
        "class Normed(nn.Module):\n"
        "    def __init__(self, dim):\n"
        "        super().__init__()\n"
        "        self.bn = nn.BatchNorm1d(dim)\n"
        "    def forward(self, x):\n"
        "        return self.bn(x.transpose(1, 2)).transpose(1, 2)\n"
    )
    assert (
        fault(run_of("Normed")) == "mixer own_mixers.Normed keeps state in buffer bn.running_mean, which a call changes"
    )


def test_looking_ahead_behind_a_projection_that_starts_at_zero_is_seen(own: Any) -> None:
    own(
        MIXER + "class Mixer(Base):\n"
        "    def __init__(self, dim):\n"
        "        super().__init__(dim)\n"
        "        nn.init.zeros_(self.inner.weight)\n"
        "    def forward(self, x):\n"
        "        return self.inner(x.roll(-1, 1))\n"
    )
    assert fault(run_of("Mixer")).endswith("is not causal: changing token 1 changed its output at token 0")


def test_the_lengths_of_further_tests_are_looked_at(own: Any) -> None:
    own(
        MIXER + "class Mixer(Base):\n"
        "    def __init__(self, dim, length):\n"
        "        super().__init__(dim)\n"
        "        self.place = nn.Parameter(torch.zeros(length, dim))\n"
        "    def forward(self, x):\n"
        "        return self.inner(x + self.place[:x.shape[1]])\n"
    )
    check_module(run_of("Mixer"))
    assert fault(run_of("Mixer", eval={"task": {"length": 32}})).startswith(
        "mixer own_mixers.Mixer fails on an input of shape [2, 32, 8]: RuntimeError: The size of tensor a (32)"
    )


def test_a_start_that_torch_does_not_draw_is_refused(own: Any) -> None:
    own(
        "import random\n"
        "class Mixer(nn.Module):\n"
        "    def __init__(self, dim):\n"
        "        super().__init__()\n"
        "        self.rate = nn.Parameter(torch.full((dim,), random.random()))\n"
        "    def forward(self, x):\n"
        "        return self.rate * x\n"
    )
    assert fault(run_of("Mixer")) == (
        "mixer own_mixers.Mixer draws the initial values of rate from another random generator than torch's; "
        "draw them with torch"
    )


def test_a_start_at_nan_is_told_as_such(own: Any) -> None:
    own(
        "class Mixer(nn.Module):\n"
        "    def __init__(self, dim):\n"
        "        super().__init__()\n"
        "        self.rate = nn.Parameter(torch.full((dim,), 1.5).logit())\n"
        "    def forward(self, x):\n"
        "        return self.rate * x\n"
    )
    line = (
        "mixer own_mixers.Mixer gives rate an initial value of NaN or inf; correct its initialisation or its arguments"
    )
    assert fault(run_of("Mixer")) == line


def test_a_script_that_ends_itself_is_no_end_of_ours(own: Any) -> None:
    """`sys.exit` in a user's file would else end the command without a word, and with success."""
    own("import sys\nsys.exit('a script')\n")
    assert "cannot be imported: SystemExit: a script" in fault(run_of("Mixer"))


def test_a_forward_that_ends_the_program_is_a_fault(own: Any) -> None:
    own(
        "import sys\nclass Mixer(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n"
        "    def forward(self, x):\n        sys.exit(0)\n"
    )
    assert "fails on an input" in fault(run_of("Mixer"))
