"""Keys whose bound is the length of the sequences: what counts of them, what is refused, what is told."""

import json
from dataclasses import replace
from typing import Any

import pytest

from mclab.config.ids import canonical, run_id
from mclab.config.lengths import length_faults
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError, leaves
from mclab.config.versions import differing, versions
from mclab.config.warnings import warnings_of
from mclab.plan.grid import load_plan
from mclab.plan.plan import Candidate
from mclab.plan.plan_diff import plan_diff, renewal
from mclab.store.record import as_record, read_record

TASK = {"length": 32, "pairs": [1, 2]}
PLAIN = {"memory": "titans", "aggregate": "none"}


def run_of(mixer: dict[str, Any] | str, **rooms: Any) -> RunConfig:
    return parse_run({"task": TASK, "model": {"mixer": mixer}, **rooms})


def faults(**rooms: Any) -> list[tuple[str, str]]:
    return list(length_faults(parse_run({"task": TASK, **rooms})))


@pytest.mark.parametrize("memory", ["titans", "dla", "memora"])
@pytest.mark.parametrize(
    ("keys", "same"),
    [
        ({"aggregate": "none", "chunk": 1024}, {"aggregate": "none", "chunk": 32}),
        ({"segment": 64, "chunk": 64}, {"segment": 64, "chunk": 32}),
        ({"segment": 64, "chunk": 64, "init": "checkpoint"}, {"segment": 64, "chunk": 32, "init": "checkpoint"}),
        ({"segment": 64, "chunk": 99, "segmentation": "log"}, {"segment": 64, "chunk": 32, "segmentation": "log"}),
        ({"aggregate": "none", "chunk": 99, "hybrid": "mal"}, {"aggregate": "none", "chunk": 32, "hybrid": "mal"}),
    ],
)
def test_a_chunk_beyond_the_length_is_the_run_of_one_that_fits(memory: str, keys: Any, same: Any):
    one, other = run_of({"memory": memory, **keys}), run_of({"memory": memory, **same})
    assert canonical(one) == canonical(other)
    assert run_id(one) == run_id(canonical(one)) == run_id(other)
    assert versions(canonical(one)) == versions(other)


def test_ids_of_runs_whose_chunk_fits_are_what_they_were():
    ids = {
        "0bdd1faf2f7ca393": {**PLAIN, "chunk": 32},
        "c72e85d70d215abe": {"memory": "titans", "segment": 64, "chunk": 32},
        "ccb865c52c5e1acc": {"memory": "titans", "segment": 8, "chunk": 1024},
        "dfe8466abcb60820": {"memory": "linear", "aggregate": "none", "chunk": 1024},
    }
    assert {run_id(run_of(mixer, task={**TASK, "pairs": [1, 2, 4]})): mixer for mixer in ids.values()} == ids


def test_a_word_of_a_pattern_comes_to_the_chunk_that_fits():
    short = {"length": 8, "pairs": [1, 2], "vocab": 256}
    word = parse_run({"task": short, "model": {"pattern": ["titans", "attention/4"]}})
    named = {"mixer": {**PLAIN, "chunk": 8}, "pattern": ["mixer", "attention/4"]}
    assert run_id(word) == run_id(parse_run({"task": short, "model": named}))
    assert run_id(word) != "045e6ecf074750f1", "what was stored with a step size of 16 tokens is not that run"


OLD = "13bcbc86f4dd0850"


def _old() -> bytes:
    """A record from before the length counted: 32 tokens, a chunk of 1024, the id that this had."""
    run = run_of({**PLAIN, "chunk": 1024}, task={**TASK, "pairs": [1, 2, 4]})
    head = {"run_id": OLD, "science": 1, "seed": 0, "config": dict(leaves(run)), "status": "done", "steps": 600}
    scores = {part: {"accuracy": 0.5, "loss": 1.0} for part in ("all", "pairs=1", "pairs=2", "pairs=4")}
    return json.dumps({**head, "valid": scores, "test": scores}).encode()


def test_what_was_stored_with_a_longer_chunk_loads_and_is_told_apart():
    stored = read_record(_old(), OLD)
    assert stored.config is not None
    assert stored.keys["model.mixer.chunk"] == 1024
    moved = differing(stored.versions, versions(stored.config))
    assert moved == "version 1 of chunk.above_length, which is 2"
    assert run_id(stored.config) != OLD, "a grid that asks for it trains it again"
    assert read_record(json.dumps(as_record(stored)).encode(), OLD).run_id == OLD


def test_the_same_grid_trains_anew_what_was_stored_with_a_longer_chunk(tmp_path):
    """The stored plan's cell is the new one's, under another id: nothing was added, and no --extend is wanted."""
    file = tmp_path / "g.yaml"
    file.write_text(
        "base:\n  task: {length: 32, pairs: [1, 2, 4]}\n"
        "  model: {mixer: {memory: titans, aggregate: none, chunk: 1024}}\n"
    )
    new = load_plan(file)
    run = run_of({**PLAIN, "chunk": 1024}, task={**TASK, "pairs": [1, 2, 4]})
    (cell,) = new.cells
    old = replace(new, cells=(replace(cell, candidates=(Candidate({}, {0: run}, {0: OLD}),)),), versions={})
    found = plan_diff(old, new)
    assert not found
    assert found.renewed == (cell.name,)
    assert "version 1 of chunk.above_length, which is 2 now" in str(renewal(old, new))


@pytest.mark.parametrize(
    ("rooms", "key", "most"),
    [
        ({"eval": {"task": {"length": 128}}}, "model.mixer.chunk", 32),
        ({"eval": {"task": {"length": 16}}}, "model.mixer.chunk", 16),
        ({"train": {"task": [{"length": 16}, {"length": 64}]}}, "model.mixer.chunk", 16),
        ({"eval": {"post_training": 1, "task": {"length": 128}}}, "model.mixer.chunk", 32),
    ],
)
def test_a_chunk_that_would_depend_on_the_length_is_refused(rooms: Any, key: str, most: int):
    ((found, reason),) = faults(model={"mixer": {**PLAIN, "depth": 1, "memory": "dla", "chunk": 64}}, **_fit(rooms))
    assert found == key
    assert reason.endswith(f"take a chunk of at most {most}")
    assert not faults(model={"mixer": {**PLAIN, "depth": 1, "memory": "dla", "chunk": most}}, **_fit(rooms))


def _fit(rooms: dict[str, Any]) -> dict[str, Any]:
    return {"eval": {"valid": 8, "test": 8} | rooms.get("eval", {}), "train": rooms.get("train", {})}


def test_a_cached_chunk_is_bounded_by_segment_and_by_the_shortest_sequence():
    longer = {"eval": {"task": {"length": 128}}}
    assert not faults(model={"mixer": {"memory": "titans", "segment": 8, "chunk": 1024}}, **longer)
    ((key, reason),) = faults(model={"mixer": {"memory": "titans", "segment": 64, "chunk": 1024}}, **longer)
    assert key == "model.mixer.chunk"
    assert reason.startswith("a chunk of 64 tokens is longer than the shortest sequences (32 tokens)")


def test_words_whose_chunks_are_cut_are_refused_where_no_key_could_say_so():
    short = {"length": 8, "pairs": [1, 2], "vocab": 256}
    words = {"pattern": ["titans", "dla"]}
    (first, _) = faults(task=short, model=words)
    assert first[0] == "model.pattern"
    assert "a chunk of titans (16 tokens) is longer than task.length 8" in first[1]
    assert not faults(task=TASK, model=words)
    mixed = {"task": {"length": 8, "pairs": [1, 2]}}
    ((key, reason),) = faults(model={"pattern": ["conv/3", "titans"]}, eval=mixed)
    assert key == "model.pattern"
    assert "write mixer in its place and model.mixer: {memory: titans, aggregate: none, chunk: 8}" in reason


def test_a_cache_after_training_counts_the_chunk_that_fits():
    """Kept every 32 tokens, chunks of 1024 written: chunks of 32 stay where they are."""
    keep = {"eval": {"post_training": 1, "post_segment": 32}}
    assert run_id(run_of({**PLAIN, "chunk": 1024}, **keep)) == run_id(run_of({**PLAIN, "chunk": 32}, **keep))


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ({"conv": 40}, "model.conv"),
        ({"mixer": "conv/40"}, "model.mixer.kernel"),
        ({"pattern": ["mixer", "conv/40"]}, "model.pattern"),
        ({"mixer": {"name": "attention", "conv": 40}}, "model.mixer.conv"),
    ],
)
def test_taps_that_training_never_reaches_may_not_read_tests(model: dict[str, Any], key: str):
    ((found, reason),) = faults(model=model, eval={"task": {"length": 128}})
    assert (found, reason.endswith("take a kernel of at most 32")) == (key, True)
    assert not faults(model=model)
    assert any(line.startswith(key) and "is never used" in line for line in warnings_of(_of(model))), warnings_of(
        _of(model)
    )


def _of(model: dict[str, Any]) -> RunConfig:
    return parse_run({"task": TASK, "model": model})


def test_the_plan_refuses_with_the_file_and_the_line(tmp_path):
    file = tmp_path / "g.yaml"
    file.write_text(
        "base:\n  task: {length: 32, pairs: 2}\n  eval: {task: {length: 64}}\n"
        "  model: {mixer: {memory: titans, aggregate: none, chunk: 64}}\n"
    )
    with pytest.raises(
        ConfigError, match=r"g\.yaml:4: model\.mixer\.chunk: a chunk of 64 tokens .* take a chunk of at most 32"
    ):
        load_plan(file)


def test_the_plan_says_what_counts_of_a_longer_chunk(tmp_path):
    file = tmp_path / "g.yaml"
    file.write_text(
        "base:\n  task: {length: 32, pairs: 2}\n  model: {mixer: {memory: titans, aggregate: none}}\n"
        "grid: {model.mixer.chunk: [16, 32, 1024]}\n"
    )
    plan = load_plan(file)
    assert [cell.name for cell in plan.cells] == ["chunk=16", "chunk=32"]
    assert plan.notes == ("3 cells, 2 distinct: chunk=1024 is the same as chunk=32",)
    assert plan.warnings == (
        (
            "model.mixer.chunk: 1024 is above task.length 32, but a chunk ends with the sequence, so that it is the "
            "same as chunk 32"
        ),
    )


@pytest.mark.parametrize(
    ("rooms", "line"),
    [
        ({"train": {"examples": 10, "batch": 64}}, "train.examples: 10 sequences are fewer than train.batch 64"),
        ({"train": {"examples": 64, "batch": 64}}, None),
        ({"train": {"steps": 9}, "eval": {"every": 10}}, "eval.every: 10 is above train.steps 9"),
        ({"train": {"steps": 10}, "eval": {"every": 10}}, None),
        (
            {"train": {"steps": 50, "stop_at": 0.9}},
            "train.stop_at: training cannot stop early, because the first evaluation on valid is at step 50 ",
        ),
        ({"train": {"steps": 9, "checkpoint_every": 9}}, "train.checkpoint_every: 9 is not below train.steps 9"),
        ({"train": {"lr": 20.0}}, "train.weight_decay: 0.1 times train.lr 20 is not below 1"),
        (
            {"train": {"steps": 9, "task": [{"length": 32, "weight": 50}, {"length": 64}]}},
            "train.task: no step is trained on length=64 pairs=1, length=64 pairs=2, because train.steps 9 ends",
        ),
        ({"train": {"steps": 60, "task": [{"length": 32, "weight": 50}, {"length": 64}]}}, None),
        (
            {"model": {"mixer": {"segment": 32}}, "eval": {"task": {"length": 64}}},
            (
                "model.mixer.segment: 32 is not below the 32 tokens of the training sequences, so that a cache is "
                "read in tests only"
            ),
        ),
        (
            {"model": {"mixer": {"aggregate": "ssc", "k": 3}}, "eval": {"task": {"length": 64}}},
            (
                "model.mixer.k: in the 32 tokens of the training sequences a token sees at most 3 kept memories, so "
                "that ssc with k 3 selects in tests only"
            ),
        ),
        (
            {"model": {"mixer": "attention/32"}, "eval": {"task": {"length": 64}}},
            (
                "model.mixer.window: 32 is not below the 32 tokens of the training sequences, so that it hides "
                "tokens in tests only"
            ),
        ),
        (
            {"model": {"mixer": {"hybrid": "mal", "window": 40}}, "eval": {"task": {"length": 64}}},
            (
                "model.mixer.window: 40 is not below the 32 tokens of the training sequences, so that it hides "
                "tokens in tests only"
            ),
        ),
        (
            {"model": {"mixer": {"gate": "input"}}, "train": {"task": {"length": 16}}},
            (
                "model.mixer.gate: input has a weight for each segment of task.length 32, but the 16 tokens of the "
                "training sequences train"
            ),
        ),
        (
            {"model": {"position": "learned"}, "train": {"task": {"length": 16}}},
            "model.position: the learned positions beyond the 16 tokens of the training sequences are never trained",
        ),
    ],
)
def test_bounds_that_other_keys_set_are_told(rooms: dict[str, Any], line: str | None):
    found = warnings_of(parse_run({"task": TASK, **rooms}))
    assert [text.startswith(line or "-") for text in found] == [True] * (line is not None), found
