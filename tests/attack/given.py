"""What a user writes, spoilt: grids, search spaces, words of a command line, modules.

An attack is a function of a place to stand in, the run folders that there are and a generator. It gives the files that
it spoilt, to be kept where something did not hold.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from mclab.config.keys import all_keys
from tests.attack import mutate
from tests.attack.bases import HALF, Bases
from tests.attack.mutate import BYTES, LINES, TEXTS, mutated
from tests.attack.place import RUNNING, Place
from tests.attack.processes import no_drawing
from tests.commands import ROOT, TINY
from tests.own_modules import GOOD, HEAD
from tests.sweep.bench import SIX, SPACE, TWELVE

#: The files that an attack gave a command, by name.
Spoilt = dict[str, bytes]
Attack = Callable[[Place, Bases, Random], Spoilt]

_YAML = (*BYTES, *LINES, *LINES, mutate.yaml_tree, mutate.yaml_tree, mutate.yaml_tree, mutate.yaml_tree, mutate.bomb)

#: Every way to say what a grid varies, beside the grids that ship.
_GRIDS = (
    TINY,
    TINY.replace("grid: {model", "changes: {full: {}, '- gate': {model.mixer.gate: none}, other: {model"),
    TINY + "select: {over: {train.lr: [3.0e-3, 1.0e-2]}, by: valid.accuracy, seeds: 1}\n",
    TINY + "zip: {task.length: [16, 32], task.vocab: [16, 32]}\nexclude: [{model.mixer.gate: none, task.vocab: 32}]\n",
    TINY + "when: {model.mixer.connector: {model.mixer.gate: context}}\n",
    "base: &b {model: {dim: 8}}\nruns: [{<<: {model.dim: 16}}, {model.dim: 32, train.lr: 3e-3}]\nseeds: [0, 3]\n",
)


def grid(place: Place, bases: Bases, rng: Random) -> Spoilt:
    shipped = sorted((ROOT / "ablations").rglob("*.yaml"))
    text = rng.choice(_GRIDS).encode() if rng.random() < 0.85 else rng.choice(shipped).read_bytes()
    spoilt = mutated(text, _YAML, rng)
    Path("grid.yaml").write_bytes(spoilt)
    more = rng.choice([[]] * 4 + [["--json"], ["--smoke"], ["--quick"], ["--seeds", "0..2"], ["train.steps=8"]])
    place.command("ablate", "--grid", "grid.yaml", "--dry-run", *more, writes=())
    return {"grid.yaml": spoilt}


def space(place: Place, bases: Bases, rng: Random) -> Spoilt:
    shipped = sorted((ROOT / "sweeps").glob("*.yaml"))
    text = rng.choice((SPACE, SIX, TWELVE)).encode() if rng.random() < 0.85 else rng.choice(shipped).read_bytes()
    spoilt = mutated(text, _YAML, rng)
    Path("space.yaml").write_bytes(spoilt)
    more = rng.choice([[]] * 4 + [["--json"], ["--repeats", "2"], ["--sampler", "grid"], ["--seed", "3"]])
    place.command("sweep", "--space", "space.yaml", "--trials", "5", "--dry-run", *more, writes=())
    return {"space.yaml": spoilt}


_KEYS = [key.path for key in all_keys()]


def _word(rng: Random) -> str:
    """`key=value`, or what somebody took for it."""
    key, value = rng.choice(_KEYS), rng.choice(TEXTS)
    if rng.random() < 0.2:
        value = mutated(rng.choice(TEXTS).encode(errors="surrogatepass"), BYTES, rng).decode(errors="surrogateescape")
    if rng.random() < 0.15:
        key = mutated(key.encode(), BYTES, rng).decode(errors="surrogateescape")
    if rng.random() < 0.2:
        value = (
            f"{{low: {value}, high: {rng.choice(TEXTS)}}}" if rng.random() < 0.5 else f"[{value}, {rng.choice(TEXTS)}]"
        )
    return rng.choice((f"{key}={value}",) * 8 + (f"{key} = {value}", value, f"{key}:{value}", f"{key}=", f"={value}"))


def _given(words: Sequence[str]) -> list[str]:
    """Words as a system can hand them over: with no NUL."""
    return [word.replace("\0", "\\0") for word in words]


def overrides(place: Place, bases: Bases, rng: Random) -> Spoilt:
    words = _given([_word(rng) for _ in range(rng.choice((1, 1, 2)))])
    Path("grid.yaml").write_text(TINY)
    head = rng.choice((["train"], ["train"], ["ablate", "--grid", "grid.yaml"]))
    place.command(*head, "--dry-run", *(part for word in words for part in ("--set", word)), writes=())
    return {}


#: Commands with the place of a word to spoil.
_LINES = """
ablate --grid grid.yaml --dry-run --seeds *
ablate --grid * --dry-run
ablate --grid grid.yaml --dry-run --out *
ablate --grid grid.yaml --dry-run --pack *
ablate --grid grid.yaml --dry-run --workers *
train --dry-run --device *
sweep --space space.yaml --dry-run --trials *
sweep --space space.yaml --trials 3 --dry-run --sampler *
sweep --space space.yaml --trials 3 --dry-run --repeats *
sweep --space * --trials 3 --dry-run
* runs/it
table runs/it --format *
table *
list *
list runs/it *
show *
show * runs/it
compare runs/it * *
compare * *
compare runs/it:* runs/it:*
plot runs/it --kind *
plot runs/it --format *
sample *
sample mqar *
sample mqar --seed *
sample mqar --split *
sample niah --count *
sample --run * --in runs/it
keys *
""".strip().split("\n")


def _spoilt_words(rng: Random) -> list[str]:
    """One of the lines, each `*` a word of `TEXTS` or the name of a key."""
    words = rng.choice(_LINES).split()
    return [rng.choice((*TEXTS, *_KEYS)) if word == "*" else word.replace("*", rng.choice(TEXTS)) for word in words]


def command_lines(place: Place, bases: Bases, rng: Random) -> Spoilt:
    Path("grid.yaml").write_text(TINY)
    Path("space.yaml").write_text(SPACE)
    with no_drawing():
        place.command(*_given(_spoilt_words(rng)))
    return {}


#: Lines that spoil what they stand beside.
_UPSETTING = r"""
import os; os.chdir('/')
torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
import warnings; warnings.simplefilter('ignore')
raise
raise SystemExit(7)
raise KeyError('x')
        raise RuntimeError('a\nb\x1b[2J')
        return None
        return x.detach()
        return x.flip(1)
        return x[:, :-1]
        return x * float('nan')
        return x.double()
        return x.sum()
        return (x, x)
        return x.to('meta')
        return x.requires_grad_(False)
        x.add_(1)
        self.rate = nn.Parameter(torch.zeros(0))
    forward = None
    __call__ = 3
	x = 1
((((((((((((((((((((((((((((((((((((((((
""".strip("\n").split("\n")


def upset(data: bytes, rng: Random) -> bytes:
    """A line of `_UPSETTING` put somewhere."""
    lines = data.decode(errors="replace").split("\n")
    lines.insert(rng.randrange(len(lines)), rng.choice(_UPSETTING))
    return "\n".join(lines).encode()


def module(place: Place, bases: Bases, rng: Random) -> Spoilt:
    name = f"own_{rng.randrange(10**12)}"
    spoilt = mutated((HEAD + GOOD).encode(), (*BYTES, *LINES, *[upset] * 12), rng)
    Path(f"{name}.py").write_bytes(spoilt)
    words = (word for word in HALF if not str(word).startswith("model.mixer"))
    mixer = f"model.mixer={{name: module, module: {name}.{rng.choice(('Mean', 'Mean', 'Gru'))}}}"
    with no_drawing():
        place.command(*words, "--set", mixer, writes=RUNNING)
    return {f"{name}.py": spoilt}
