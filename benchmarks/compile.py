"""What the Triton kernels come to for GPUs that need not be here: registers, spills, shared memory on sm_80 and sm_90.

Compiled ahead of time, in a process without TRITON_INTERPRET; nothing runs.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks import results

#: Compute capabilities, and the most shared memory that a program may ask for, in bytes.
SHARED = {80: 166_912, 90: 232_448}


class Compiled(NamedTuple):
    """What a compiler said of one kernel."""

    registers: int
    spilled: int
    """Bytes a thread of local memory, where registers do not suffice."""
    shared: int
    """Bytes a program."""
    ptx: str
    warps: int


class Case(NamedTuple):
    """A kernel, its compile-time arguments, and the types of its others by name."""

    name: str
    kernel: Any
    constants: dict[str, Any]
    types: dict[str, str]
    warps: int
    stages: int
    may_spill: bool
    """Where registers do not suffice, which is known and costs time alone."""


def compiled(case: Case, capability: int) -> Compiled:
    """Compile it ahead of time."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = case.kernel.arg_names
    signature = {name: "constexpr" if name in case.constants else case.types[name] for name in names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if signature[name].startswith("*")}
    source = ASTSource(case.kernel, signature, dict(case.constants), aligned)
    made = triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_warps": case.warps, "num_stages": case.stages}
    )
    registers, spilled = _resources(made.asm["cubin"])
    return Compiled(registers, spilled, made.metadata.shared, made.asm["ptx"], case.warps)


def _resources(cubin: bytes) -> tuple[int, int]:
    """Registers and bytes of stack a thread, of a cubin with one kernel."""
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        words = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    line = next(line for line in said.splitlines() if "REG:" in line)
    found = dict(word.split(":", 1) for word in line.split() if ":" in word)
    return int(found["REG"]), int(found["STACK"]) + int(found["LOCAL"])


def flash(width: int, precision: str, segment: int, gate: int) -> Iterator[Case]:
    """The three kernels of Flash-GRM for heads of a width; `gate` is NONE, CONTEXT or INPUT of tiles.py."""
    from mclab.kernels.linear.triton import backward, forward, grm

    low = precision == "bf16"
    known = grm.constants(width, width, segment, gate, True, low, double=False)
    some, sums = ("*bf16" if low else "*fp32"), "*fp32"
    tokens = dict.fromkeys(("q", "k", "v", "u", "p", "dy"), some) | {"logits": sums if gate == 2 else some}
    made = ("y", "lse", "dq", "du", "dlogits", "delta", "own_gamma", "own_dr", "dk", "dv", "dp")
    types = tokens | dict.fromkeys(made, sums) | dict.fromkeys("TSN", "i32") | {"scale": "fp32"}
    for kernel in (forward.forward, backward.rows_backward, backward.columns_backward):
        yield Case(
            f"flash_grm {kernel.__name__}", kernel, known, types, *grm.tile(width, low)[2:], width == 32 and not low
        )


def chosen(width: int, precision: str, segment: int, choices: int) -> Iterator[Case]:
    """The three kernels of Flash-SSC, for tokens that read so many segments; 0 where every segment has a weight."""
    from mclab.kernels.linear.triton import grm, ssc, weighted

    low = precision == "bf16"
    known = ssc.constants(width, width, segment, choices, low, double=False)
    some = "*bf16" if low else "*fp32"
    tokens = dict.fromkeys(("q", "k", "v", "dy"), some) | {"chosen": "*i32" if choices else some}
    made = dict.fromkeys(("weights", "y", "dq", "dweights", "dk", "dv"), "*fp32")
    types = tokens | made | dict.fromkeys("TSN", "i32")
    for kernel in (weighted.weighted_forward, weighted.weighted_rows_backward, weighted.weighted_columns_backward):
        name = f"flash_ssc {kernel.__name__.removeprefix('weighted_')}"
        spills = kernel is weighted.weighted_rows_backward and width == 64 and not low and not choices
        yield Case(name, kernel, known, types, *grm.tile(width, low)[2:], spills)


def deep(width: int, precision: str, chunk: int, titans: bool) -> Iterator[Case]:
    """The kernels of a memory of depth 2, Titans' or DLA's."""
    from mclab.kernels.fastweight.net import Net
    from mclab.kernels.fastweight.states import Plan
    from mclab.kernels.fastweight.triton import backward, deep, forward, reads_backward

    net = Net(None, "l2" if titans else "dot", skip=True)
    plan = Plan((True, False), 2 if titans else 1, titans, 0 if titans else 1, (0,))
    known = deep.constants(net, plan, width, chunk, titans, True, precision == "bf16", double=False)
    whole = dict.fromkeys(("M", "X", "C", "each", "kept"), "i32") | {"floor": "fp32", "place_kept": "*i64"}
    known |= {"LAST": False, "KEEPS": True}
    of_backward = (
        *(reads_backward.again, reads_backward.second_backward, reads_backward.first_backward),
        *(backward.states_backward, backward.tokens_backward),
    )
    for kernel in (forward.states, forward.reads, *of_backward):
        types = dict.fromkeys(kernel.arg_names, "*fp32") | whole
        own = {name: value for name, value in known.items() if name in kernel.arg_names}
        spills = width > 16 and (precision == "fp32" or kernel is backward.states_backward)
        yield Case(f"depth 2 {kernel.__name__}", kernel, own, types, *deep.SCHEDULE[known["KP"]], spills)


def erasing(width: int, precision: str, gated: bool) -> Iterator[Case]:
    """The kernels of the delta rules, for restarting segments whose final states are kept."""
    from mclab.kernels.delta import checked
    from mclab.kernels.delta.triton import backward, forward, read

    known = read.constants(width, width, checked.KERNEL_CHUNK, gated, False, precision == "bf16", double=False)
    whole = dict.fromkeys(("M", "X", "C", "kept"), "i32") | {"place_kept": "*i64"}
    known |= {"LAST": True, "KEEPS": True}
    of_backward = (backward.prepare_backward, backward.states_backward, backward.tokens_backward)
    for kernel in (forward.prepare, forward.states, forward.reads, *of_backward):
        types = dict.fromkeys(kernel.arg_names, "*fp32") | whole
        own = {name: value for name, value in known.items() if name in kernel.arg_names}
        spills = width > 16 and precision == "fp32"
        yield Case(f"erasing {kernel.__name__}", kernel, own, types, *read.SCHEDULE[known["KP"]], spills)


def rates(chunk: int) -> Iterator[Case]:
    """What the rates of chunks of so many tokens come to, and back."""
    from mclab.kernels.fastweight.triton import rates, steps

    known = steps.constants(chunk, double=False)
    for kernel in (rates.forward, rates.backward):
        types = dict.fromkeys(kernel.arg_names, "*fp32") | dict.fromkeys("XC", "i32") | {"last": "*i64"}
        yield Case(f"rates {kernel.__name__}", kernel, known, types, steps.WARPS[known["CP"]], 1, False)


def cases() -> Iterator[tuple[tuple[str, ...], Case]]:
    """Every case with its words: kernel, precision, width, and what else it is compiled for."""
    for precision, widths in (("fp32", (16, 32, 64)), ("bf16", (16, 32, 64, 128))):
        for width in widths:
            for segment in (8, 256):
                for case in flash(width, precision, segment, gate=1):
                    yield (case.name, precision, str(width), f"context gate, segments of {segment}"), case
                for case in chosen(width, precision, segment, choices=3):
                    yield (case.name, precision, str(width), f"2 chosen, segments of {segment}"), case
            for case in chosen(width, precision, 8, choices=0):
                yield (case.name, precision, str(width), "given weights, segments of 8"), case
    for precision in ("fp32", "bf16"):
        for width in (16, 32):
            for titans in (True, False):
                for case in deep(width, precision, 16, titans):
                    yield (case.name, precision, str(width), "titans" if titans else "dla"), case
    for precision in ("fp32", "bf16"):
        for width in (16, 32, 64):
            for gated in (False, True):
                for case in erasing(width, precision, gated):
                    yield (case.name, precision, str(width), "gated_delta" if gated else "delta"), case
    for chunk in (16, 32):
        for case in rates(chunk):
            yield (case.name, "fp32", "any", f"chunks of {chunk}"), case


def main(words: list[str] | None = None) -> None:
    """With arguments only the cases that have all words of one of them; `--json` prints lines for the tests."""
    words = words or []
    chosen = [word for word in words if word != "--json"]
    rows = []
    for said, case in cases():
        if chosen and not any(set(word.split()) <= set(" ".join(said).split()) for word in chosen):
            continue
        for capability, most in SHARED.items():
            made = compiled(case, capability)
            figures = (f"sm_{capability}", case.warps, made.registers, made.spilled, made.shared)
            rows.append([*said, *map(str, figures)])
            if "--json" in words:
                print(json.dumps(_row(said, case, made, f"sm_{capability}", most)), flush=True)
            else:
                print("  ".join(rows[-1]), flush=True)
    head = ("kernel", "run", "width", "case", "target", "warps", "registers", "bytes spilled", "bytes shared")
    if not words:
        print(results.write("compile", results.table(head, rows)))


def _row(said: tuple[str, ...], case: Case, made: Compiled, target: str, most: int) -> dict[str, Any]:
    """What a test asks of a kernel: `products` are the kinds of tensor core instructions."""
    kernel, run, width, what = said
    found = sorted({kind for kind in ("tf32", "bf16") if re.search(rf"(wg)?mma\S*\.{kind}", made.ptx)})
    return {
        "kernel": kernel, "run": run, "width": width, "case": what, "target": target, "spilled": made.spilled,
        "shared": made.shared, "most_shared": most, "products": " ".join(found), "may_spill": case.may_spill,
    }  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
