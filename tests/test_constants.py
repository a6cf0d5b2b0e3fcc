"""Small tensors that are made once for each device."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from mclab import constants
from mclab.caching.segment import ConstantSegments, ListedSegments, LogSegments
from mclab.constants import integers, once

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "_store", constants._Store())


def test_is_made_once_for_each_device() -> None:
    first = integers((3, 1), CPU)
    assert first.tolist() == [3, 1]
    assert integers((3, 1), CPU) is first
    assert integers((3, 2), CPU) is not first
    assert integers((3, 1), torch.device("meta")).device.type == "meta"
    assert integers((3, 1), CPU) is first
    assert any(each is first for each in constants.holdings())


def test_is_good_for_gradients_wherever_it_was_made_first() -> None:
    @once
    def weights(device: torch.device) -> torch.Tensor:
        return torch.arange(3.0, device=device)

    with torch.inference_mode():
        assert not weights(CPU).is_inference()
    x = torch.ones(3, requires_grad=True)
    (x * weights(CPU)).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 1, 2]


def test_what_only_stands_for_a_tensor_is_not_kept() -> None:
    with FakeTensorMode():
        integers((5, 6), CPU)
    assert integers((5, 6), CPU).tolist() == [5, 6]


def test_keeps_no_more_than_is_allowed_and_forgets_the_longest_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "NUMBERS", 4)
    first, second = integers((1, 2), CPU), integers((3, 4), CPU)
    assert integers((1, 2), CPU) is first
    integers((5, 6), CPU)
    assert integers((1, 2), CPU) is first
    assert integers((3, 4), CPU) is not second


@pytest.mark.parametrize(
    "segments",
    [ConstantSegments(13, 4), LogSegments(29, 4), ListedSegments(17, 2, (4, 2, 6))],
    ids=lambda s: type(s).__name__,
)
def test_masks_of_segments_are_what_spans_and_readers_say(segments) -> None:
    seen = segments.visible(CPU)
    for column, (first, end) in enumerate(segments.readers):
        for token in range(segments.count * segments.segment):
            reads = first <= token // segments.segment < end
            assert seen[token, column] == (reads or segments.own_column(CPU)[token] == column)
    assert torch.equal(segments.past(CPU), seen & ~segments.own(CPU))
    assert segments.visible(CPU) is seen
