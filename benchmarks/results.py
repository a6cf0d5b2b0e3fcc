"""What was measured, as Markdown under benchmarks/results/."""

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

FOLDER = Path(__file__).parent / "results"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) + "\n"


def write(subject: str, text: str) -> str:
    """Save it with where and when it was measured; the file's path from here."""
    today = date.today()
    FOLDER.mkdir(exist_ok=True)
    place = FOLDER / f"{subject}-{today}.md"
    place.write_text(f"# {subject.capitalize()}, {today}\n\n{machine()}. `python -m benchmarks {subject}`\n\n{text}")
    return str(place.relative_to(FOLDER.parents[1]))


def machine() -> str:
    """Cores, processor and torch, in words."""
    import torch

    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in _lines(info) if line.startswith("model name")]
    return f"{os.cpu_count()}-core {names[0] if names else platform.machine()}, 1 thread, torch {torch.__version__}"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
