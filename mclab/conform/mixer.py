"""The properties that the user's own mixer must have. They are tested before it is trained.

Shapes: B batch, T time, D model width.
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from mclab.config.model import ModuleMixer
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.own.found import Hear, make, seeded, told
from mclab.own.kept import DICE, kept, other_dice

#: Smaller differences, relative to the largest output, are rounding errors. For sums of a few hundred terms these are
#: about 1e-13 in fp64 and 1e-5 in fp32; a mixer that is not causal differs by far more.
_SAME = {torch.float64: 1e-9, torch.float32: 1e-4}
_ROWS = 2
#: The scale of the noise that is added to every parameter for a second round of tests: a projection that starts at
#: zero would hide errors behind it.
_SHAKE = 0.1
_SEED = 0

Say = Callable[[str], None]


def silent(line: str) -> None:
    pass


def check_module(run: RunConfig, device: str = "cpu", say: Say = silent) -> None:
    """Raise `ConfigError` (one line) unless the user's own module in the run is a valid mixer. Runs without one pass.

    The module must be found and constructed. Its output must be finite and have the shape and dtype of the input. The
    same input must always give the same output, whatever inputs came in between. The module must not change its
    parameters or buffers, must not mix the rows of a batch, must be causal, must use every parameter, and must pass the
    gradient to its input. All this is tested at the sequence lengths of the task, `train.task` and `eval.task`.

    Changes that the module makes to the process (such as the current folder) are undone, as in training; `say` gets one
    line that names them.
    """
    if not isinstance(run.model.mixer, ModuleMixer):
        return
    trained = torch.float64 if run.train.precision == "fp64" else torch.float32
    heard = _Heard()
    with kept(), seeded(_SEED), torch.no_grad():
        _check_start(run, heard)
        exact = _exact(run, trained, device, heard)
        for length in lengths_of(run):
            _Look(run, length, trained, device, heard).check_output()
            for shaken in (False, True):
                _Look(run, length, exact, device, heard, shaken).check()
    if heard.changes:
        say(f"warning: {_name(run)}: {heard.told()}; mclab undoes this")


class _Heard:
    """Collects the changes that a module makes to the process, by stage: importing, making or calling the module."""

    def __init__(self) -> None:
        self.changes: dict[str, dict[str, None]] = {}

    def __call__(self, when: str, what: list[str]) -> None:
        if what:
            self.changes.setdefault(when, {}).update(dict.fromkeys(what))

    def told(self) -> str:
        """Return the changes as text, e.g. `importing it changes the current folder, torch's default dtype`."""
        return "; ".join(f"{when} it changes {', '.join(what)}" for when, what in self.changes.items())


def lengths_of(run: RunConfig) -> tuple[int, ...]:
    return tuple(dict.fromkeys([run.task.length, *(each.task.length for each in (*run.mix, *run.test_variants))]))


def _made(run: RunConfig, hear: Hear) -> nn.Module:
    assert isinstance(run.model.mixer, ModuleMixer)
    with seeded(_SEED):
        return make(run.model.mixer, run.model.dim, run.task.length, hear)


def _name(run: RunConfig) -> str:
    assert isinstance(run.model.mixer, ModuleMixer)
    return f"mixer {run.model.mixer.module}"


def _check_start(run: RunConfig, hear: Hear) -> None:
    """Raise `ConfigError` unless initial values are finite, parameters are real floats, and equal seeds give equal
    values.

    Equal seeds give different values if a generator other than torch's draws them.
    """
    one = _made(run, hear)
    other_dice()
    other = _made(run, hear)
    for (name, values), again in zip(_held(one), (values for _, values in _held(other)), strict=True):
        if not torch.isfinite(values).all():
            raise ConfigError(
                f"{_name(run)} gives {name} an initial value of NaN or inf; correct its initialisation or its arguments"
            )
        if not torch.equal(values, again):
            raise ConfigError(
                f"{_name(run)} draws the initial values of {name} from another random generator than torch's; draw "
                "them with torch"
            )
    for name, values in one.named_parameters():
        if not values.is_floating_point():
            raise ConfigError(
                f"{_name(run)} has the parameter {name} in {_word(values.dtype)}, but parameters must be real floats"
            )


def _exact(run: RunConfig, trained: torch.dtype, device: str, hear: Hear) -> torch.dtype:
    """Return the dtype for the tests: fp64, which rounds the least, if the module works in it, else `trained`."""
    try:
        y = _Look(run, run.task.length, torch.float64, device, hear).output()
    except ConfigError:
        return trained
    return torch.float64 if y.dtype == torch.float64 else trained


def _held(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _word(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class _Look:
    """The tests of a new module of a run on random inputs of one length; if `shaken`, with noise on its parameters."""

    def __init__(
        self, run: RunConfig, length: int, dtype: torch.dtype, device: str, hear: Hear, shaken: bool = False
    ) -> None:
        self.name, self.shaken, self.length, self.hear = _name(run), shaken, length, hear
        self.module = _made(run, hear).to(device=device, dtype=dtype)
        self.x, self.other = (self._draw(run.model.dim, dtype, device) for _ in range(2))
        if shaken:
            for values in self.module.parameters():
                if values.requires_grad:
                    values.add_(_SHAKE * torch.randn(values.shape).to(values))

    def _draw(self, dim: int, dtype: torch.dtype, device: str) -> Tensor:
        return torch.randn(_ROWS, self.length, dim).to(device, dtype)

    def check(self) -> None:
        """Test all properties.

        A shaken module whose output is not finite is not tested, since not every parameter may take any value.
        """
        if self.shaken and not torch.isfinite(self.output()).all():
            return
        y = self.check_output()
        self._check_state(y)
        self._check_rows(y)
        self._check_causal(y)
        self._check_gradients()

    def output(self, x: Tensor | None = None) -> Tensor:
        """Return the output for `x` (by default `self.x`).

        Raises `ConfigError` if the module raises or returns no tensor.
        """
        given = self.x if x is None else x
        seed, changed = torch.initial_seed(), list[str]()
        try:
            with kept(changed.extend):
                y = self.module(given)
                reseeded = torch.initial_seed() != seed
        except (Exception, SystemExit) as error:
            raise ConfigError(f"{self.name} fails on an input of shape {list(given.shape)}: {told(error)}") from error
        self.hear("calling", [what for what in changed if what != DICE or reseeded])
        if not isinstance(y, Tensor):
            raise ConfigError(f"{self.name} returns a {type(y).__name__}; it must return one tensor [B, T, D]")
        return y

    def check_output(self) -> Tensor:
        """Return the output after a check of its shape, its dtype and whether it is finite."""
        y = self.output()
        if y.shape != self.x.shape:
            raise ConfigError(
                f"{self.name} returns shape {list(y.shape)} for an input of shape {list(self.x.shape)}; it must keep "
                "[B, T, D]"
            )
        if y.dtype != self.x.dtype:
            raise ConfigError(
                f"{self.name} returns {_word(y.dtype)} for an input in {_word(self.x.dtype)}; it must keep the dtype"
            )
        if not torch.isfinite(y).all():
            raise ConfigError(f"{self.name} returns NaN or inf for normal inputs of length {self.length}")
        return y

    def _check_state(self, y: Tensor) -> None:
        """Check that the module keeps no state and is not random.

        With the same seed, the same input must give the same output after another input. Input, parameters and buffers
        must be unchanged.
        """
        before, x = {name: values.detach().clone() for name, values in _held(self.module)}, self.x.clone()
        with seeded(_SEED):
            first = self.output()
        self.output(self.other)
        other_dice()
        with seeded(_SEED):
            again = self.output()
        if not torch.equal(self.x, x):
            raise ConfigError(f"{self.name} writes into its input; make a copy of it first")
        for name, values in _held(self.module):
            if not torch.equal(values, before[name]):
                kind = "parameter" if isinstance(values, nn.Parameter) else "buffer"
                raise ConfigError(f"{self.name} keeps state in {kind} {name}, which a call changes")
        if not torch.equal(first, again):
            raise ConfigError(
                f"{self.name} keeps state: the same input gives a different output after a call with another input"
            )
        if not torch.equal(y, first):
            raise ConfigError(f"{self.name} is random: the same input gives different outputs (dropout? set it to 0)")

    def _check_rows(self, y: Tensor) -> None:
        changed = torch.cat([self.x[:1], self.other[1:]])
        if self._differs(self.output(changed)[:1], y[:1]) is not None:
            raise ConfigError(f"{self.name} mixes the rows of a batch: changing row 1 changed the output of row 0")

    def _check_causal(self, y: Tensor) -> None:
        for t in _places(self.length):
            if (place := self._ahead(y, range(t, self.length))) is None:
                continue
            for token in range(t, self.length):
                if (alone := self._ahead(y, [token])) is not None:
                    self._refuse(f"token {token}", alone)
            self._refuse(f"the tokens from {t} on", place)

    def _refuse(self, changed: str, place: int) -> None:
        raise ConfigError(f"{self.name} is not causal: changing {changed} changed its output at token {place}")

    def _ahead(self, y: Tensor, tokens: Sequence[int]) -> int | None:
        """Return the first token before `tokens` whose output depends on the inputs at `tokens`, or `None`."""
        x = self.x.clone()
        x[:, list(tokens)] = self.other[:, list(tokens)]
        return self._differs(self.output(x)[:, : tokens[0]], y[:, : tokens[0]])

    def _differs(self, y: Tensor, expected: Tensor) -> int | None:
        """Return the first token at which two outputs differ by more than rounding."""
        least = _SAME[y.dtype] * (1 + expected.abs().max().item())
        places = ((y - expected).abs() > least).any(-1).any(0).nonzero()
        return int(places[0]) if len(places) else None

    def _check_gradients(self) -> None:
        """Check that a gradient reaches every parameter.

        A gradient of zero is an error only in a shaken module, since initial values may cause it otherwise.
        """
        for (name, _), grad in zip(self._trained(), self._gradients(), strict=True):
            if grad is None or (self.shaken and not grad.any()):
                raise ConfigError(
                    f"{self.name} has the parameter {name}, which no gradient reaches; use it or remove it"
                )

    def _trained(self) -> list[tuple[str, nn.Parameter]]:
        return [(name, values) for name, values in self.module.named_parameters() if values.requires_grad]

    def _gradients(self) -> Sequence[Tensor | None]:
        with torch.enable_grad():
            x = self.x.clone().requires_grad_()
            y = self.output(x)
            if not y.requires_grad:
                raise ConfigError(f"{self.name} passes no gradient on, because its output is cut off from its input")
            wanted = [x, *(values for _, values in self._trained())]
            try:
                onward, *found = torch.autograd.grad(y, wanted, self.other, allow_unused=True)
            except RuntimeError as error:
                raise ConfigError(f"{self.name} fails in the backward pass: {told(error)}") from error
            if onward is None:
                raise ConfigError(f"{self.name} passes no gradient on to its input; remove what cuts it (detach?)")
            return found


def _places(length: int) -> list[int]:
    """Return the tokens from which the test of causality changes a sequence: near both ends and around the quarters."""
    near = [1, 2, 3, *(length * part // 4 + step for part in (1, 2, 3) for step in (-1, 0, 1)), length - 2, length - 1]
    return sorted({t for t in near if 0 < t < length})
