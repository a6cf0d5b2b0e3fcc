"""Where the gates look in models whose layers are not all alike."""

import pytest
import torch

from mclab.caching.record_weights import recording
from mclab.tasks import TASKS
from mclab.train.weights import load_model
from mclab.verbs.sample.answers import Head, predicted
from mclab.verbs.sample.run import chosen
from tests.verbs.sample.bench import small_run, stored


def look(tmp_path, run):
    model, config = load_model(tmp_path, stored(tmp_path, run))
    return model, predicted(model, config, chosen(config), "test", 2, layer=None, head=None)


@pytest.mark.parametrize("hybrid", ["mal", "mag"])
def test_a_hybrid_shows_the_gate_of_its_memory(tmp_path, hybrid):
    _, found = look(tmp_path, small_run(model={"mixer": {"segment": 4, "hybrid": hybrid, "window": 3}}))
    assert found.heads == [Head(0, 0)]
    assert all(strip.visible for strip in found.known(Head(0, 0)))


def test_a_memory_that_a_pattern_names_has_no_gate_and_the_mixer_behind_it_keeps_its_own(tmp_path):
    model = {"layers": 3, "pattern": ["linear", "attention/3", "mixer"], "mixer": {"segment": 4}}
    run = small_run(model=model)
    lm, found = look(tmp_path, run)
    assert found.heads == [Head(2, 0)]
    batch = TASKS["mqar"].batch(run.task, [run.seed], "test", 0, 2, "cpu")
    with recording(lm) as seen, torch.no_grad():
        lm(batch.tokens, batch.positions)
    for b, sample in enumerate(found.samples):
        for query in sample.queries:
            weights = seen[1].weights[b, query.at]
            torch.testing.assert_close(torch.tensor(query.strips[Head(2, 0)].weights), weights, atol=0, rtol=0)


def test_a_pattern_without_caches_says_that_it_has_no_gate(tmp_path):
    base = {"dim": 8, "layers": 2, "pattern": ["linear", "attention/3"]}
    run = small_run()
    run = type(run).model_validate({**run.model_dump(exclude={"model"}), "model": base})
    _, found = look(tmp_path, run)
    assert found.why_no_gate == "with aggregate none there is one memory and no gate"
    assert found.heads == []
