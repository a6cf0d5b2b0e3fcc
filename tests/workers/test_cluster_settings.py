"""What mclab says of a scheduler whose settings are not those that it asks for."""

from typing import Any

import dask
import pytest
from distributed import LocalCluster

from mclab.config.options import RunOptions
from mclab.workers import open_pool


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"worker-ttl": "30s", "allowed-failures": 2, "worker-saturation": 1.0}, []),
        (
            {"worker-ttl": "5 minutes", "allowed-failures": 3, "worker-saturation": 1.1},
            [
                "worker-ttl is 300s, so a worker that hangs keeps its pack for 300 s or more",
                "allowed-failures is 3, so a pack that kills its worker can kill 4 workers before it counts as failed",
                "worker-saturation is 1.1, so packs may wait for a busy worker",
            ],
        ),
        (
            {"worker-ttl": None, "allowed-failures": 0, "worker-saturation": float("inf")},
            ["worker-ttl is off, so a worker that hangs keeps its pack for ever", "worker-saturation is inf"],
        ),
    ],
)
def test_what_the_schedulers_settings_cost(settings: dict[str, Any], expected: list[str]) -> None:
    said: list[str] = []
    named = {f"distributed.scheduler.{name}": value for name, value in settings.items()}
    quiet = {"n_workers": 0, "processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with (
        dask.config.set(named),
        LocalCluster(**quiet) as here,
        open_pool(RunOptions("cpu", scheduler=here.scheduler_address), say=said.append),
    ):
        pass
    assert len(said) == len(expected) + 1
    for line, start in zip(said, expected, strict=False):
        name = start.split()[0].upper().replace("-", "_")
        assert line.startswith(f"warning: the scheduler's setting {start}")
        assert f"DASK_DISTRIBUTED__SCHEDULER__{name}=" in line
