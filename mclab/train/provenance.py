"""Collect the provenance of a result, which is stored with the result and is never part of a run's id."""

import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import torch

import mclab
from mclab.config.own import hashes
from mclab.config.run import RunConfig
from mclab.kernels.dispatch import Choice, asked, choices


def provenance(device: torch.device, pack: int, run: RunConfig, captured: bool, compiled: str) -> dict[str, Any]:
    """Return device, versions, git state, size of the pack that a run trained in, and what computed its steps.

    `kernels` says which form computed each rule. Where torch's form took the place of a Triton kernel, because there is
    none for this case or because it failed, the reason is given too. `step` says whether a step was a CUDA graph, and
    `compiled` whether it ran through torch.compile, as `mclab.train.compiled` says it. `sources` exists only for runs
    with parts of the user's own: a hash of the file of each part.
    """
    kernels = "torch" if compiled == "yes" else None  # a compiled step has no kernels of ours
    return {
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
        "pack": pack,
        "kernels": ", ".join(_computed_by(*each) for each in choices(run, str(device), kernels).items()),
        "step": "captured" if captured else "eager",
        "compiled": compiled,
        "mclab": mclab.__version__,
        "git": _git_state(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        **({"sources": found} if (found := hashes(run)) else {}),
    }


def _computed_by(rule: str, choice: Choice) -> str:
    said = choice.failed or asked() == "triton"
    reason = f" ({choice.why_not})" if said and choice.why_not else ""
    return f"{rule}: {choice.form}{reason}"


@cache
def _git_state() -> str | None:
    """Return the commit of mclab's checkout, with `+` if the tree is changed; `None` outside a checkout."""
    where = Path(mclab.__file__).parent
    try:
        commit = _git(where, "rev-parse", "--short=12", "HEAD")
        return commit + "+" if _git(where, "status", "--porcelain", "--untracked-files=no", "--", ".") else commit
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(where: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", where, *words], capture_output=True, text=True, check=True).stdout.strip()
