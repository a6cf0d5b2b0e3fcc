"""`mclab sample --run`: a stored model's answers, as people and programs get them."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.commands import SCRIPT, fine, mclab, one_line, snapshot
from tests.stored import done as ended
from tests.verbs.sample.bench import small_run, stored, trained

RUN = small_run(task={"vocab": 16, "length": 16, "pairs": [2]}, train={"steps": 30})


@pytest.fixture
def run(here: Path) -> str:
    """The id of a trained run in runs/kept."""
    return stored(here / "runs/kept", RUN)


def test_answers_are_marked_in_the_sequence_and_every_query_has_a_strip(run: str) -> None:
    done = fine("sample", "--run", run[:6], "--count", 2)
    blocks = done.out.split("\n\n")
    assert blocks[0] == f"run {run} of runs/kept"
    found = fine("sample", "--run", run[:6], "--count", 2, "--json").json
    for number, sample in enumerate(found["samples"]):
        sequence, strips = blocks[1 + 2 * number], blocks[2 + 2 * number].splitlines()
        assert sequence.startswith(f"sample {number} of test, seed 0, pairs=2\n")
        assert strips[0].strip() == "layer 0"
        for query, line in zip(sample["queries"], strips[1:], strict=True):
            key, value = sample["words"][query["at"]], sample["wanted"][str(query["at"])]
            said = "✓" if query["right"] else f"✗v{query['predicted']}"
            assert f"?{key}={value} {said}" in sequence
            assert line.split()[:3] == [str(query["at"]), f"?{key}={value}", said]
            assert line.count("[") == 1
            assert line.endswith(f"  {query['gates'][0]['share']:4.2f}")
    right = [query["right"] for sample in found["samples"] for query in sample["queries"]]
    assert f"{sum(right)} of 4 answers right ({sum(right) / 4:.3f})" in done.out
    assert "of the weight is on the segment that holds the answer" in blocks[-1]


def test_json_says_all(run: str) -> None:
    found = fine("sample", "--run", run, "--in", "runs/kept", "--slice", "pairs=2", "--count", 16, "--json").json
    assert (found["run_id"], found["folder"], found["gateless"]) == (run, "runs/kept", None)
    assert found["accuracy"] == trained(RUN).test["pairs=2"].accuracy
    shares = []
    for sample in found["samples"]:
        for query in sample["queries"]:
            (gate,) = query["gates"]
            assert (gate["layer"], gate["head"]) == (0, 0)
            assert len(gate["weights"]) == query["at"] // 4 + 1
            assert [place // 4 for place in query["needs"]] == gate["held"]
            assert all(sample["tokens"][place] == query["wanted"] for place in query["needs"])
            shares.append(gate["share"])
    (gate,) = found["gates"]
    assert gate["share"] == pytest.approx(sum(shares) / len(shares))


def test_a_whole_answer_of_several_tokens_is_right_or_wrong(here: Path) -> None:
    run = small_run(task={"name": "niah", "vocab": 64, "length": 32, "pairs": None})
    done = fine("sample", "--run", stored(here / "runs/niah", run), "--count", 1)
    (line,) = [line for line in done.out.splitlines() if line.strip().startswith("answer")]
    assert line.split()[:2] in (["answer", "✓"], ["answer", "✗"])
    assert done.out.count("?") == 7 + 7 + 1  # in the sequence, in the strips, in the legend


def test_a_model_without_a_gate_has_answers_alone(here: Path) -> None:
    name = stored(here / "runs/plain", small_run(model={"mixer": {"name": "attention"}}))
    done = fine("sample", "--run", name, "--count", 1)
    assert "the mixer attention has no gate" in done.out.splitlines()
    assert "layer" not in done.out
    assert "answers right" in done.out
    refused = mclab("sample", "--run", name, "--count", 1, "--plot", "gates.png")
    assert (refused.code, refused.err) == (
        2,
        "--plot: this run has no weights of a gate to draw (the mixer attention has no gate)\n",
    )
    assert not (here / "gates.png").exists()


def test_a_picture(run: str, here: Path) -> None:
    done = fine("sample", "--run", run, "--plot", "pictures/gates.png")
    assert done.err == "wrote pictures/gates.png\n"
    assert (here / "pictures/gates.png").read_bytes().startswith(b"\x89PNG")


def test_digits_where_blocks_cannot_be_shown(run: str, here: Path) -> None:
    done = subprocess.run(
        [SCRIPT, "sample", "--run", run, "--count", "1"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        cwd=here,
        check=True,
    )
    text = done.stdout.decode("ascii")
    assert "\\u" not in text
    assert "?" in text
    assert any(word in text for word in (" ok", " xv"))


def test_other_keys_of_the_task(run: str) -> None:
    found = fine("sample", "mqar", "length=32", "pairs=4", "--run", run, "--split", "valid", "--json").json
    assert len(found["samples"]) == 3
    assert all(len(sample["tokens"]) == 32 and len(sample["queries"]) == 4 for sample in found["samples"])
    assert all(sample["split"] == "valid" for sample in found["samples"])


BAD = {
    "a folder for the task": (".", ".: a folder is no task; mclab sample --run ID --in . shows a stored run"),
    "no digits": ("--run nothing", "'nothing' is no run id"),
    "no run": ("--run 0123456789abcdef", "no run id in runs begins with these digits"),
    "no folder": ("--run {} --in nowhere", "nowhere: there is no such run folder"),
    "another task": ("niah --run {}", "was trained on the task mqar; leave out niah"),
    "vocabulary": ("vocab=32 --run {}", "vocab cannot be changed"),
    "a key of the model": ("model.dim=32 --run {}", "only keys of the task can be changed"),
    "slice": ("--run {} --slice pairs=3", "--slice: 'pairs=3' is not one of pairs=2"),
    "slice as a key": ("slice=pairs=2 --run {}", "slice is an option of this command; write --slice pairs=2"),
    "layer": ("--run {} --layer 3", "--layer: layer 3 has no gate; give one of 0"),
    "seed": ("--run {} --seed 1", "--seed: a stored run is shown on sequences of its own seed"),
    "picture": ("--run {} --plot gates.gif", "--plot: 'gif' is not one of png, svg, pdf"),
    "nowhere to draw": ("--run {} --plot tiny.yaml/gates.png", "--plot: tiny.yaml/gates.png: cannot be written: "),
    "slice without a run": ("mqar --slice pairs=4", "--slice: this option needs --run ID"),
    "picture without a run": ("--plot gates.png", "--plot: this option needs --run ID"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(run: str, here: Path, case: str) -> None:
    words, message = BAD[case]
    before = snapshot(here)
    one_line(mclab("sample", *words.format(run).split()), message)
    assert snapshot(here) == before


def test_a_run_without_weights_names_the_command(here: Path) -> None:
    name = stored(here / "runs/bare", RUN, ended(RUN))
    done = mclab("sample", "--run", name)
    one_line(done, f"run {name} is stored without weights", "--save-weights --out runs/bare-weights")


def test_a_task_alone_is_as_it_was(here: Path) -> None:
    """Without --run nothing of it shows."""
    assert fine("sample").out == fine("sample", "mqar", "--seed", 0, "--split", "train", "--count", 3).out
    assert fine("sample", "pairs=4", "--json").json[0]["slice"] == "pairs=4"
