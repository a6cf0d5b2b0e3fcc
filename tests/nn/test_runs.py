"""`mclab.nn` beside `mclab train`: its stored weights, and what both learn."""

from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import mclab
from mclab.nn import MemoryCaching
from tests.covering import Row
from tests.nn.bench import B
from tests.verbs.sample.bench import small_run, stored


@pytest.mark.parametrize(
    "mixer",
    [
        {"segment": 4},
        {"memory": "titans", "gate": "input", "segmentation": "listed", "segment_lengths": [3, 5], "chunk": 64},
        {"memory": "dla", "aggregate": "none", "chunk": 64},
        {"memory": "delta", "aggregate": "ssc", "hybrid": "mal", "window": 3},
    ],
    ids=["linear", "titans", "no cache", "hybrid"],
)
def test_a_stored_runs_weights_give_what_its_mixers_give(mixer: Row, tmp_path: Any) -> None:
    """Bit for bit, read from its folder or from the file itself."""
    run = small_run(model={"layers": 2, "heads": 2, "position": "rotary", "mixer": mixer})
    name = stored(tmp_path, run)
    model, config = mclab.load_model(tmp_path, name)
    seen = list[tuple[Tensor, Tensor]]()
    for block in model.blocks:
        block.mixer.register_forward_hook(lambda _, given, y: seen.append((given[0], y)))
    batch = torch.randint(0, config.task.vocab, (1, B, config.task.length), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model(batch, torch.zeros(1, B, 1, dtype=torch.int64))
        weights = load_file(tmp_path / "weights" / f"{name}.safetensors")
        for place, (x, y) in enumerate(seen):
            layer = MemoryCaching.from_run(model, config, place)
            assert torch.equal(layer(x[0]), y[0])
            layer.reset_parameters()
            own = f"blocks.{place}."
            layer.load_state_dict(
                {key.removeprefix(own): value for key, value in weights.items() if key.startswith(f"{own}mixer.")}
            )
            assert torch.equal(layer(x[0]), y[0])


def test_a_layer_that_is_no_memory_is_not_given(tmp_path: Any) -> None:
    run = small_run(model={"layers": 2, "pattern": ["attention", "mixer"]})
    model, config = mclab.load_model(tmp_path, stored(tmp_path, run))
    for layer, message in ((0, "layer: layer 0 is attention, not a memory"), (2, "layer: must be .* 0 to 1, got 2")):
        with pytest.raises(ValueError, match=message):
            MemoryCaching.from_run(model, config, layer)
