"""Write the weights of a trained run as a file, and load the model from that file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from mclab.config.ids import SCIENCE, canonical, id_as_of, moved_defaults, run_id
from mclab.config.run import RunConfig
from mclab.config.stored import restored
from mclab.config.strict import ConfigError
from mclab.config.versions import differing, versions
from mclab.models.lm import LM
from mclab.replicas.parameters import initialise
from mclab.train import tensor_file
from mclab.train.pack import DTYPES, Pack

#: The advice in messages where there are no weights.
_WAY = (
    "--save-weights keeps weights; a run that is stored without them is not trained again, so give --save-weights "
    "and another --out"
)


def to_bytes(pack: Pack, r: int) -> bytes:
    """Return replica `r` as a safetensors file: every parameter under its name in `LM.named_parameters()`, without axis
    R.

    The file also has the run's id, the version of mclab's numerics (`SCIENCE`), the config, the versions of parts whose
    formula has changed (docs/ids.md), and for words of a layer pattern those defaults that have changed since. It says
    nothing about where and when the run was trained.
    """
    run = canonical(pack.runs[r])
    facts = {"run_id": run_id(run), "science": SCIENCE, "config": run.model_dump(mode="json")}
    moved = {"versions": versions(run), "words": moved_defaults(run.model)}
    facts |= {key: value for key, value in moved.items() if value}
    return tensor_file.to_bytes({name: values[r] for name, values in pack.model.named_parameters()}, facts)


def load_model(path: str | Path, run: str | None = None) -> tuple[LM, RunConfig]:
    """Load a trained model from a file of weights or from a run folder; return the model and its config.

    The model has one replica and is in eval mode on the CPU. For a folder with the weights of several runs, `run` must
    be the run's id or its first digits. Raises `ConfigError` if there are no such weights, if they are damaged, or if
    the file is not of this version of mclab.
    """
    if run is not None:
        run = run.strip().lower().removesuffix(".json")
    file = _file(Path(path), run)
    try:
        values, facts = tensor_file.read(file)
    except (ValueError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        way = "; to have them again, train the run with --save-weights and another --out"
        raise ConfigError(f"{file}: {reason}{way * isinstance(error, tensor_file.DamagedError)}") from error
    config = _config(file, facts)
    if run is not None and not str(facts["run_id"]).startswith(run):
        raise ConfigError(f"{file}: this file has the weights of run {facts['run_id']}, not of {run}")
    return _model(file, config, values), config


def _file(path: Path, run: str | None) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise ConfigError(f"{path}: there is no such file of weights and no such run folder")
    found = sorted(each.stem for each in (path / "weights").glob("[!.]*.safetensors"))
    if run is None and len(found) > 1:
        raise ConfigError(f"{path}: this folder has the weights of {len(found)} runs; give a run id, e.g. {found[0]}")
    if not found:
        raise ConfigError(f"{path}: this folder has no weights; {_WAY}")
    meant = [name for name in found if name.startswith(run)] if run else found[: run is None]
    if len(meant) != 1:
        near = ", ".join((meant or found)[:3])
        what = (
            f"{len(meant)} runs have an id that begins with"
            if meant
            else "no run with weights has an id that begins with"
        )
        raise ConfigError(f"{path}: {what} {run!r}; e.g. {near}; {_WAY}")
    return path / "weights" / f"{meant[0]}.safetensors"


def _config(file: Path, facts: dict[str, Any]) -> RunConfig:
    if facts.get("science") != SCIENCE:
        raise ConfigError(
            f"{file}: this file is of science version {facts.get('science')}, but this mclab has {SCIENCE}"
        )
    made, words = facts.get("versions", {}), facts.get("words", {})
    try:
        config = restored(dict(_flat(facts["config"])))
        found = id_as_of(config, made, words)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{file}: its config is not the config of a run") from error
    if found != facts.get("run_id"):
        raise ConfigError(f"{file}: its config is that of another run, {found}")
    if other := differing(_of_model(made), _of_model(versions(config))):
        raise ConfigError(
            f"{file}: this model was trained with {other} now, so that its weights would compute something else here"
        )
    if words != moved_defaults(canonical(config).model):
        raise ConfigError(
            f"{file}: this model was trained when names in its pattern stood for other keys, so that its weights "
            "would compute something else here"
        )
    return config


def _flat(data: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _of_model(made: dict[str, int]) -> dict[str, int]:
    """Return the versions of the parts that the use of the weights depends on, without task and training."""
    return {part: version for part, version in made.items() if not part.startswith(("task.", "train"))}


@torch.no_grad()
def _model(file: Path, config: RunConfig, values: dict[str, torch.Tensor]) -> LM:
    model = LM(config, 1)
    initialise(model, [config.seed])  # constants of a user's own module are no parameters; they start from the seed
    model.to(DTYPES[config.train.precision]).eval()
    own = dict(model.named_parameters())
    if {name: each[0].shape for name, each in own.items()} != {name: each.shape for name, each in values.items()}:
        raise ConfigError(f"{file}: its parameters are not those of the model in its config")
    for name, parameter in own.items():
        parameter[0].copy_(values[name])
    return model
