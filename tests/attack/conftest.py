"""How much is attacked, with which seed, and what of it a test does."""

from dataclasses import dataclass

import pytest

from tests.attack.bases import Bases, made
from tests.attack.kinds import KINDS


@dataclass(frozen=True)
class Size:
    """Spoilt inputs of each kind, kills of grids and of searches, flipped bits of each kind of stored file."""

    inputs: int
    grid_kills: int
    search_kills: int
    flips: int


#: What runs with every test run, and what `make attack` runs: 12,000 inputs, 89 kills, 3,000 flips.
SIZES = {"small": Size(15, 2, 2, 20), "full": Size(-(-12_000 // len(KINDS)), 56, 33, 750)}
#: Inputs, kills and flips of one test, so that two processes share the work.
BLOCK, KILLS = 50, 4


def pytest_report_header(config: pytest.Config) -> str:
    return f"attack: {config.getoption('--attack')}, seed {config.getoption('--seed')}"


def _blocks(total: int, most: int) -> list[range]:
    return [range(start, min(start + most, total)) for start in range(0, total, most)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each block of numbers."""
    size, only = SIZES[metafunc.config.getoption("--attack")], metafunc.config.getoption("--input")
    blocks = {
        "inputs": _blocks(size.inputs, BLOCK),
        "grid_kills": _blocks(size.grid_kills, KILLS),
        "search_kills": _blocks(size.search_kills, KILLS),
        "flips": _blocks(size.flips, BLOCK),
    }
    for name, found in blocks.items():
        if name in metafunc.fixturenames:
            chosen = found if only is None else [range(only, only + 1)]
            metafunc.parametrize(name, chosen, ids=[str(block.start) for block in chosen])


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--seed"))


@pytest.fixture(scope="session")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    """Run folders to copy."""
    return made(tmp_path_factory.mktemp("bases"))
