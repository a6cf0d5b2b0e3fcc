"""The device that a command's options stand for, and the scheduler that is not there."""

import socket
from dataclasses import replace

import pytest

from mclab.config.options import RunOptions
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.runner.devices import check_scheduler, here, resolved, unmet
from mclab.runner.execute import ALONE


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    for count, found in ((0, "cpu"), (2, "cuda")):
        monkeypatch.setattr("torch.cuda.device_count", lambda count=count: count)
        assert resolved(RunOptions(pack=3)) == RunOptions(found, pack=3)
        assert resolved(RunOptions("cpu")).device == "cpu"
    assert [resolved(RunOptions(name)).device for name in ("cuda", "cuda:1")] == ["cuda", "cuda:1"]
    with pytest.raises(ConfigError, match=r"this machine has no cuda:2 \(it has 2 CUDA devices\); give --device cpu"):
        resolved(RunOptions("cuda:2"))


def test_what_is_tried_out_here_is_tried_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert here(RunOptions("cuda", scheduler="tcp://head:8786")) == "cpu"
    assert here(RunOptions("cuda:1")) == "cuda:1"


def test_addresses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_scheduler(f"tcp://127.0.0.1:{port}")
        check_scheduler(f"tls://localhost:{port}/")
    for unknown in (None, "ucx://127.0.0.1:9", "inproc://here"):
        check_scheduler(unknown)
    with pytest.raises(ConfigError, match=f"no program answers at tcp://127.0.0.1:{port}"):
        check_scheduler(f"tcp://127.0.0.1:{port}")
    with pytest.raises(ConfigError, match=f"no program answers at tcp://127.0.0.1:{port}"):
        resolved(RunOptions("cpu", scheduler=f"tcp://127.0.0.1:{port}"))


def test_says_once_for_each_rule_what_no_triton_kernel_computes() -> None:
    runs = [RunConfig.model_validate({"seed": seed, "model": {"pattern": ["titans", "conv/3"]}}) for seed in (0, 1)]
    told = list(unmet(runs, replace(ALONE, kernels="triton")))
    reasons = {"titans": "Triton needs a CUDA device, not cpu", "conv": "mclab has no Triton kernel for it"}
    assert told == [
        f"--kernels triton: {rule} is computed with torch instead, because {why}" for rule, why in reasons.items()
    ]
    assert not list(unmet(runs, replace(ALONE, kernels="auto")))
