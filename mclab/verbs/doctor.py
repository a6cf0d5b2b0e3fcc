"""`mclab doctor`: versions, devices, memory and disk of this machine; what is missing, and what then does not work."""

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from mclab.config.model import MIXERS, RULES
from mclab.config.options import AUTO
from mclab.kernels.compile_mode import compiler, missing
from mclab.kernels.dispatch import Choice, Shape, resolve
from mclab.runner.memory_limits import machine

State = Literal["ok", "note", "broken"]

#: Optional packages, and what does not work without them.
OPTIONAL = {
    "bokeh": "a Dask cluster has no dashboard",
    "psycopg": "mclab sweep --storage postgresql://... does not work; pip install 'psycopg[binary]'",
    "cmaes": "mclab sweep --sampler cmaes does not work; pip install cmaes",
    "pytest": "make test does not run",
    "ruff": "make lint does not run",
    "mypy": "make lint does not run",
}
#: Optional programs, and what does not work without them.
PROGRAMS = {
    "git": "records do not name the git commit that they were made with",
    "pdflatex": "table.tex cannot be compiled on this machine",
}
#: Optional packages that are imported as a test: psycopg can be installed but not work, because libpq is missing.
_IMPORTED = ("psycopg", "cmaes")
_GIB = 2**30
#: A run may not finish if the free disk space or memory, in GiB, is below this.
_LITTLE_DISK, _LITTLE_MEMORY = 1.0, 1.0


@dataclass(frozen=True)
class Finding:
    """One printed line. `cost` says what the finding means for the user; it is empty if `state` is ok."""

    about: str
    name: str
    value: str
    state: State = "ok"
    cost: str = ""


def examine(folder: Path) -> list[Finding]:
    """Return all findings. Free space and `runs/` are looked up in `folder`.

    Imports torch. A package that cannot be imported is a finding, not an error.
    """
    return [*_packages(), *_devices(), *_machine(), *_places(folder), *_optional()]


def broken(findings: list[Finding]) -> bool:
    """Return whether something that mclab needs is missing or does not work."""
    return any(finding.state == "broken" for finding in findings)


def _packages() -> Iterator[Finding]:
    yield Finding("versions", "python", f"{platform.python_version()} ({sys.executable})")
    try:
        needed, own = requires("mclab") or [], version("mclab")
    except PackageNotFoundError:
        yield Finding("versions", "mclab", "not installed", "broken", "pip install -e . in its checkout")
        return
    yield Finding("versions", "mclab", own)
    for line in needed:
        if "extra ==" not in line and _applies(line):
            yield _package(line)


def _package(line: str) -> Finding:
    """Check that a required package, e.g. `polars<3,>=2`, is installed in an allowed version and can be imported."""
    name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding("versions", name, "missing", "broken", f"mclab needs it: pip install '{line}'")
    try:
        import_module({"pyyaml": "yaml"}.get(name, name))
    except Exception as error:  # whatever a broken installation raises is reported
        return Finding("versions", name, found, "broken", f"cannot be imported: {error}".splitlines()[0])
    if not _within(line, found):
        return Finding("versions", name, found, "broken", f"mclab needs {line}")
    return Finding("versions", name, found)


def _applies(line: str) -> bool:
    """Return whether the condition of a requirement (e.g. `; python_version < "3.12"`) holds on this machine."""
    try:
        from packaging.requirements import Requirement
    except ImportError:  # without the package `packaging`, conditions cannot be checked
        return True
    marker = Requirement(line).marker
    return marker is None or marker.evaluate()


def _within(line: str, found: str) -> bool:
    try:
        from packaging.requirements import Requirement
    except ImportError:  # without the package `packaging`, versions cannot be checked
        return True
    return Requirement(line).specifier.contains(found, prereleases=True)


def _devices() -> Iterator[Finding]:
    try:
        import torch
    except Exception:  # `_packages` has reported it
        return
    count = torch.cuda.device_count()
    if not count:
        built = "torch is built without CUDA" if torch.version.cuda is None else "torch finds no CUDA device"
        yield Finding(
            "devices", "cuda", "none", "note", f"{built}; runs train on the CPU, with one process for each core"
        )
    for number in range(count):
        device = torch.cuda.get_device_properties(number)
        memory = f"{device.total_memory / _GIB:.0f} GiB"
        yield Finding("devices", f"cuda:{number}", f"{device.name}, {memory}, sm_{device.major}{device.minor}")
    yield Finding("devices", "cpu", _processor())
    yield from _kernels("cuda" if count else "cpu")


def _processor() -> str:
    """Return the processor's model name if Linux gives it, else what Python knows about it."""
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return f"{found[1]} ({platform.machine()})" if found else platform.processor() or platform.machine()


def _kernels(device: str) -> Iterator[Finding]:
    """Yield for each rule which form computes it on `device` in fp32 with narrow heads, and why Triton does not."""
    found: dict[Choice, list[str]] = {}
    for rule in (*RULES, *(name for name in MIXERS if name not in ("memory", "module"))):
        found.setdefault(resolve(rule, device, "fp32", Shape(64, 16), AUTO), []).append(rule)
    most = max(found.values(), key=len)
    for choice, rules in found.items():
        reason = f" ({choice.why_not})" if choice.why_not else ""
        rest = "every other rule" if len(found) > 1 else "every rule"
        yield Finding("kernels", choice.form, f"{rest if rules is most else ', '.join(rules)}{reason}")
    step = "one CUDA graph for each shape of batch" if device == "cuda" else "eager"
    yield Finding("kernels", "training step", step)
    lacks = missing(device)
    yield (
        Finding("kernels", "--compile", "not possible", "note", f"{lacks}; steps are eager")
        if lacks
        else Finding("kernels", "--compile", f"possible, with {shutil.which(compiler())}")
    )


def _machine() -> Iterator[Finding]:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    total = os.cpu_count() or allowed
    yield Finding("machine", "cores", f"{allowed} of {total}" if allowed != total else f"{total}")
    threads = os.environ.get("OMP_NUM_THREADS")
    yield Finding(
        "machine", "threads", f"{threads or 'one'} a CPU run (OMP_NUM_THREADS {'' if threads else 'not '}set)"
    )
    if (found := machine()) is not None:
        free, whole = (number / _GIB for number in found)
        little = free < _LITTLE_MEMORY
        cost = "use fewer --workers, which need less" if little else ""
        yield Finding("machine", "memory", f"{free:.1f} of {whole:.1f} GiB free", "note" if little else "ok", cost)


def _places(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free / _GIB
    little = free < _LITTLE_DISK
    cost = "records and tables may not fit" if little else ""
    yield Finding("disk", "free", f"{free:.1f} GiB in {folder.resolve()}", "note" if little else "ok", cost)
    runs = folder / "runs"
    where = runs if runs.is_dir() else folder
    try:
        tempfile.TemporaryFile(dir=where).close()
        yield Finding("disk", "runs/", "writable" if where is runs else "does not exist yet, but can be made")
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        yield Finding("disk", "runs/", f"not writable ({said})", "note", "give another folder with --out")


def _optional() -> Iterator[Finding]:
    for name, cost in OPTIONAL.items():
        yield _option(name, cost)
    for name, cost in PROGRAMS.items():
        found = shutil.which(name)
        yield Finding("optional", name, found or "missing", "ok" if found else "note", "" if found else cost)


def _option(name: str, cost: str) -> Finding:
    """Check that an optional package is installed and, if it is in `_IMPORTED`, can be imported.

    `cost` says what does not work without the package.
    """
    try:
        found = version(name)
        if name in _IMPORTED:
            import_module(name)
    except PackageNotFoundError:
        return Finding("optional", name, "missing", "note", cost)
    except Exception:  # whatever a broken installation raises
        return Finding("optional", name, f"{found}, but it cannot be imported", "note", cost)
    return Finding("optional", name, found)
