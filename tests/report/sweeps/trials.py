"""Trials made up by hand for the tests of a sweep's reports."""

from typing import Any

from mclab.plan.space_trials import Objective, SpaceAxis, Trial, Trials

GATE = SpaceAxis("model.mixer.gate", "choice", ("context", "input", None))
K = SpaceAxis("model.mixer.k", "int", low=1, high=3, when="model.mixer.aggregate: ssc")
LR = SpaceAxis("train.lr", "float", low=0.001, high=0.1, log=True)
ACCURACY, STATE = Objective("valid.accuracy", "maximize"), Objective("state_floats", "minimize")


def trial(number: int, accuracy: float | str, params: dict[str, Any], state: float | None = None, **more: Any) -> Trial:
    """A trial that is done with that accuracy, or ended with that status; of two objectives where `state` is given."""
    named = {axis.path: params[short] for short, axis in (("gate", GATE), ("k", K), ("lr", LR)) if short in params}
    more = {"run_ids": (f"r{number}",), **more}
    if isinstance(accuracy, str):
        return Trial(number, accuracy, named, **more)  # type: ignore[arg-type]
    metrics = {
        "valid.accuracy": accuracy,
        "test.accuracy": accuracy / 2,
        "params": 8176.0,
        "state_floats": state or 9.0,
    }
    values = (accuracy,) if state is None else (accuracy, state)
    return Trial(number, "done", named, values, metrics, **more)


def study(*trials: Trial, axes: tuple[SpaceAxis, ...] = (GATE, K, LR), two: bool = False, **more: Any) -> Trials:
    """A study of those trials."""
    objectives = (ACCURACY, STATE) if two else (ACCURACY,)
    return Trials("mc", "What matters?", axes, objectives, (0, 1), len(trials), trials, **more)


def weights(**shares: float) -> dict[str, dict[str, float]]:
    """Importances for the accuracy."""
    return {
        "valid.accuracy": {axis.path: shares.get(name, 0.0) for name, axis in (("gate", GATE), ("k", K), ("lr", LR))}
    }


SEVERAL = (
    trial(0, 0.9, {"gate": "context", "lr": 0.01, "k": 2}),
    trial(1, 0.7, {"gate": "input", "lr": 0.003}),
    trial(2, 0.8, {"gate": "context", "lr": 0.099}),
    trial(3, 0.5, {"gate": None, "lr": 0.02, "k": 3}, inert=("model.mixer.k",)),
    trial(4, "diverged", {"gate": "input", "lr": 0.1}, diverged_step=7),
    trial(5, 0.9, {"gate": "context", "lr": 0.01, "k": 2}, run_ids=("r0",), repeat_of=0),
    trial(6, "failed", {"gate": "input", "lr": 0.02}, error="ValueError: a | b\nout of luck."),
)
FRONT = (
    trial(0, 0.9, {"gate": "context"}, 4000.0),
    trial(1, 0.6, {"gate": "input"}, 500.0),
    trial(2, 0.6, {"gate": None}, 700.0),
    trial(3, 0.9, {"gate": "context"}, 4000.0),
)
