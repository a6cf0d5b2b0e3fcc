"""What is said of `--kernels triton` where torch's forms compute all the same."""

from collections.abc import Iterable, Iterator

from mclab.config.options import RunOptions
from mclab.config.run import RunConfig
from mclab.kernels.dispatch import choices


def unmet(runs: Iterable[RunConfig], options: RunOptions) -> Iterator[str]:
    """A line for each rule of these runs that no Triton kernel computes although one was asked for."""
    if options.kernels != "triton":
        return
    found = {
        f"--kernels triton: {rule} is computed by torch's forms: {choice.why_not}": None
        for run in runs
        for rule, choice in choices(run, options.device, options.kernels).items()
        if choice.form != "triton"
    }
    yield from found
