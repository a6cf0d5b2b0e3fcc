"""`make gpu`: what needs a CUDA device: its tests, the kernels' times beside torch's forms, and the gating ablation."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec

from benchmarks import results

#: Tokens of a sequence; sequences and heads; turns.
LENGTHS, SEQUENCES, REPEATS = (64, 256, 1024, 4096, 16384), 128, 10
MCLAB = (sys.executable, "-c", "from mclab.cli import main; main()")
#: Both devices train this much of ablations/gating.yaml.
SHORT = ("--grid", "ablations/gating.yaml", "--seeds", "0..1", "train.steps=200")


def main() -> int:
    if find_spec("torch") is None or not _cuda():
        print("make gpu: torch finds no CUDA device on this machine", file=sys.stderr)
        return 2
    red = subprocess.run([sys.executable, "-m", "pytest", "-m", "gpu"], check=False).returncode
    if red:
        print("the tests are red: no figures", file=sys.stderr)
        return 1
    head = ("kernel", "tokens", "torch, ms", "Triton, ms", "times")
    print(results.write("gpu", results.table(head, [*_flash(), *_chunked()])))
    failed = 0
    for device in ("cuda", "cpu"):
        words = [*MCLAB, "ablate", *SHORT, "--device", device, "--out", f"runs/gating-{device}"]
        failed |= subprocess.run(words, check=False).returncode
    return failed


def _cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def _milliseconds(work: Callable[[], object]) -> float:
    """The median of forward and backward, on the device."""
    import torch

    times = []
    for _ in range(REPEATS + 2):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        work()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last))
    return sorted(times[2:])[REPEATS // 2]


def _row(name: str, T: int, torch_form: Callable[[], object], kernel: Callable[[], object]) -> tuple[str, ...]:
    slow, fast = _milliseconds(torch_form), _milliseconds(kernel)
    return name, str(T), f"{slow:.3f}", f"{fast:.3f}", f"{slow / fast:.1f}"


def _flash() -> Iterator[tuple[str, ...]]:
    """GRM of the linear memory with the context gate, segments of an eighth of the sequence, heads of 64."""
    import torch

    from mclab.kernels.linear import flash_grm
    from mclab.kernels.linear.gate import Gate
    from mclab.kernels.linear.triton import grm

    for low in (False, True):
        for T in LENGTHS:
            q, k, v, u = (torch.randn(SEQUENCES, T, 64, device="cuda", requires_grad=True) for _ in range(4))

            def both(form: Callable[..., torch.Tensor], *rest: object) -> None:
                form(q, k, v, Gate(u, k, 8.0, True), T // 8, *rest).sum().backward()  # noqa: B023

            slow = "not measured beyond 4096: scores fill the memory"
            if T <= 4096:
                yield _row(
                    f"Flash-GRM, {'bf16' if low else 'fp32'}", T,
                    lambda both=both: both(flash_grm.reference), lambda both=both, low=low: both(grm.gated_read, low),
                )  # fmt: skip
            else:
                fast = _milliseconds(lambda both=both, low=low: both(grm.gated_read, low))
                yield f"Flash-GRM, {'bf16' if low else 'fp32'}", str(T), slow, f"{fast:.3f}", ""


def _chunked() -> Iterator[tuple[str, ...]]:
    """A layer, forward and backward: Titans of depth 2 and the gated delta rule without a cache, linear with ssc."""
    import torch

    from mclab.config.run import RunConfig
    from mclab.kernels.dispatch import using
    from mclab.models.lm import LM
    from mclab.replicas.parameters import initialise

    layers: list[tuple[int, dict[str, object]]] = [
        (16, {"memory": "titans", "aggregate": "none"}),
        (32, {"memory": "titans", "aggregate": "none"}),
        (16, {"memory": "gated_delta", "aggregate": "none"}),
        (64, {"memory": "gated_delta", "aggregate": "none"}),
        # Outside of a training step the other routes read all segments.
        (64, {"memory": "linear", "aggregate": "ssc", "route": "hard", "segment": 64}),
    ]
    for width, mixer in layers:
        for T in LENGTHS[:3]:
            model = {"dim": width, "layers": 1, "mixer": mixer}
            run = RunConfig.model_validate({"task": {"length": T, "pairs": [4]}, "model": model})
            lm = LM(run, 1)
            initialise(lm, [0])
            lm.cuda()
            tokens = torch.randint(0, run.task.vocab, (1, SEQUENCES, T), device="cuda")

            def both(kernels: str) -> None:
                with using(kernels):
                    lm(tokens, tokens[..., :4] * 0).sum().backward()  # noqa: B023

            yield _row(
                f"a layer of {mixer['memory']}, width {width}", T,
                lambda both=both: both("torch"), lambda both=both: both("triton"),
            )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
