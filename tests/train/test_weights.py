"""A trained model as a file, and the same model back."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load

import mclab
from mclab.config.ids import canonical, run_id
from mclab.config.options import Keep
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.models.lm import LM
from mclab.store import Store
from mclab.train import train_pack
from mclab.train.evaluate import EvalSet
from mclab.train.weights import load_model
from tests.train.test_loop import run_config

KEEP = Keep(weights=True)


def folder_of(path: Path, runs: list[RunConfig]) -> dict[str, Outcome]:
    """A run folder with these runs, trained as one pack."""
    outcomes = train_pack(runs, device="cpu", keep=KEEP)
    with Store(path) as store:
        for run, outcome in zip(runs, outcomes, strict=True):
            store.put(run, outcome)
    return {run_id(run): outcome for run, outcome in zip(runs, outcomes, strict=True)}


@pytest.mark.parametrize("precision", ["fp32", "fp64", "bf16"])
def test_a_model_that_is_loaded_again_scores_what_is_stored(tmp_path: Path, precision: str) -> None:
    run = canonical(run_config(precision=precision, steps=60))
    (outcome,) = folder_of(tmp_path, [run]).values()
    model, config = load_model(tmp_path)
    assert config == run
    assert not model.training
    test = EvalSet(config, [config.seed], "test", config.eval.test, torch.device("cpu"))
    scores = test.scores(model, torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"))
    assert scores == [outcome.test]
    assert mclab.load_model(tmp_path, run_id(run))[1] == run


def test_the_file_holds_every_parameter_of_its_replica_and_what_it_is(tmp_path: Path) -> None:
    runs = [canonical(run_config(seed, precision="fp64")) for seed in range(2)]
    found = folder_of(tmp_path, runs)
    for run in runs:
        path = tmp_path / "weights" / f"{run_id(run)}.safetensors"
        alone = load(train_pack([run], device="cpu", keep=KEEP)[0].weights or b"")
        tensors = load(path.read_bytes())
        assert path.read_bytes() == found[run_id(run)].weights
        assert {name: each.shape for name, each in tensors.items()} == {
            name: each.shape[1:] for name, each in LM(run, 1).named_parameters()
        }
        for name, each in tensors.items():
            torch.testing.assert_close(each, alone[name], rtol=0, atol=1e-10)
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["mclab"])
        assert (facts["run_id"], facts["config"]["seed"]) == (run_id(run), run.seed)
        assert load_model(path)[1] == run
        assert load_model(tmp_path, run_id(run))[1] == run


def test_a_run_that_diverged_has_no_weights() -> None:
    (outcome,) = train_pack([run_config(lr=1e30)], device="cpu", keep=KEEP)
    assert outcome.weights is None


def test_what_cannot_be_loaded_is_one_line(tmp_path: Path) -> None:
    runs = [run_config(seed, steps=1) for seed in range(2)]
    names = sorted(folder_of(tmp_path / "two", runs))
    with Store(tmp_path / "none"):
        pass
    torn = tmp_path / "torn.safetensors"
    torn.write_bytes((tmp_path / "two/weights" / f"{names[0]}.safetensors").read_bytes()[:99])
    assert run_id(load_model(tmp_path / "two", f"{names[1][:12].upper()}.json")[1]) == names[1]
    for path, run, told in (
        (tmp_path / "nowhere", None, "there is no such file of weights and no such run folder"),
        (tmp_path / "none", None, "this folder has no weights; --save-weights keeps weights; "),
        (
            tmp_path / "two",
            "x",
            f"no run with weights has an id that begins with 'x'; e.g. {names[0]}, {names[1]}; --save",
        ),
        (tmp_path / "two", None, f"this folder has the weights of 2 runs; give a run id, e.g. {names[0]}"),
        (torn, None, "it is incomplete, or not a safetensors file"),
        (
            tmp_path / "two/weights" / f"{names[0]}.safetensors",
            names[1],
            f"this file has the weights of run {names[0]}, not ",
        ),
    ):
        with pytest.raises(ConfigError, match=r"^\S+: ") as caught:
            load_model(path, run)
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)
