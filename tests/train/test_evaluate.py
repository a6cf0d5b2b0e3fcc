"""Evaluation: whole answers and their tokens, own slices and those of further exams, lengths never trained."""

from itertools import product

import pytest
import torch

from mclab.config.model import RULES
from mclab.config.outcome import ALL
from mclab.config.run import RunConfig
from mclab.models.lm import LM
from mclab.replicas.parameters import initialise
from mclab.tasks import NO_ANSWER, TASKS
from mclab.tasks.scoring import counts, values_found
from mclab.train import train_pack
from mclab.train.data import TrainData
from mclab.train.evaluate import EvalSet, _greedy
from tests.registries import words
from tests.tolerances import FP64

CPU = torch.device("cpu")
OFF = torch.autocast("cpu", enabled=False)
MQAR = {"vocab": 64, "length": 16, "pairs": [1, 2]}
NIAH = {"name": "niah", "length": 32, "depth": [0, 100]}


def run_config(task=MQAR, model=None, train=None, exams=(), **evaluation):
    return RunConfig.model_validate({
        "task": task,
        "model": {"dim": 8, **(model or {})},
        "train": {"steps": 4, "batch": 4, **(train or {})},
        "eval": {"every": 2, "valid": 8, "test": 16, "task": exams, **evaluation},
    })  # fmt: skip


def untrained(run, replicas=1):
    model = LM(run, replicas)
    initialise(model, range(replicas))
    return model.double()


class Oracle:
    """Answers everything right but for the last position of every second sequence of a slice."""

    def __init__(self, evaluation):
        self.known = {}
        for part in evaluation.slices.values():
            (rows,) = part.chunks(10**9)
            self.known |= {
                tuple(tokens.tolist()): (answers, place % 2 == 1)
                for place, (tokens, answers) in enumerate(zip(rows.tokens[0], rows.answers[0], strict=True))
            }
        self.vocab = evaluation.slices[evaluation.own[0]].task.vocab

    def __call__(self, tokens, positions):
        logits = torch.zeros(*positions.shape, self.vocab)
        for row, line in enumerate(tokens[0]):
            answers, wrong = self.known[tuple(line.tolist())]
            wanted = answers.clone()
            wanted[-1] = (wanted[-1] + wrong) % self.vocab
            logits[0, row, torch.arange(len(wanted)), wanted] = 50.0
        return logits


def test_an_answer_is_right_when_all_of_its_tokens_are():
    """Three sequences of two answers of two tokens, one answer padding and one half of it: 4 of 5 answers, 8 of 9."""
    answers = torch.tensor([[[1, 2, 3, 4], [5, 6, NO_ANSWER, NO_ANSWER], [7, NO_ANSWER, 8, 9]]])
    chosen = torch.tensor([[[1, 2, 3, 9], [5, 6, 0, 0], [7, 0, 8, 9]]])
    assert counts(chosen, answers, 2, 1).tolist() == [[4], [5], [8], [9], [8], [9]]
    assert counts(chosen, answers, 1, 1).tolist() == [[8], [9], [8], [9], [8], [9]]
    assert counts(chosen, answers, 4, 2).tolist() == [[2], [3], [4], [5], [8], [9]]
    with pytest.raises(AssertionError):
        counts(chosen, answers, 3, 1)


@pytest.mark.parametrize(("preset", "length"), [("mv", 80), ("mq", 80)])
def test_values_count_alone_where_an_answer_is_several(preset, length):
    """Half of the sequences have the last of four values wrong: half of the answers, 7 of 8 values are right."""
    evaluation = EvalSet(run_config({**NIAH, "preset": preset, "length": length}), [0], "valid", 16, CPU)
    (scores,) = evaluation.scores(Oracle(evaluation), OFF)
    for part in (ALL, "depth=0", "depth=100"):
        assert (scores[part].accuracy, scores[part].value_accuracy) == (0.5, 7 / 8)
        assert scores[part].token_accuracy == pytest.approx(55 / 56)


class Backwards:
    """Gives the values of an answer in reverse order, whatever it is fed on the way."""

    def __init__(self, evaluation):
        self.task, self.known = evaluation.run.task, {}
        for part in evaluation.slices.values():
            (rows,) = part.chunks(10**9)
            self.places = rows.positions[0, 0].tolist()
            for tokens, answers in zip(rows.tokens[0], rows.answers[0], strict=True):
                values = answers.view(-1, self.task.value_tokens)
                self.known[self.haystack(tokens)] = values.flip(0).flatten()

    def haystack(self, tokens):
        return tuple(tokens[: self.task.length - self.task.question_tokens].tolist())

    def __call__(self, tokens, positions):
        logits = torch.zeros(*positions.shape, self.task.vocab)
        for row, line in enumerate(tokens[0]):
            at = torch.tensor([self.places.index(place) for place in positions[0, row].tolist()])
            logits[0, row, torch.arange(len(at)), self.known[self.haystack(line)][at]] = 50.0
        return logits


@pytest.mark.parametrize("preset", ["mv", "mq"])
def test_values_in_another_order_are_found_and_not_right(preset):
    task = {**NIAH, "preset": preset, "length": 80}
    evaluation = EvalSet(run_config(task), [0], "test", 16, CPU)
    (scores,) = evaluation.scores(Backwards(evaluation), OFF)
    assert (scores[ALL].accuracy, scores[ALL].value_accuracy, scores[ALL].values_found) == (0.0, 0.0, 1.0)
    evaluation = EvalSet(run_config(task), [0], "valid", 16, CPU)
    (valid,) = evaluation.scores(Backwards(evaluation), OFF)
    assert (valid[ALL].value_accuracy, valid[ALL].values_found) == (0.0, None)


def test_a_free_answer_goes_on_from_the_models_own_tokens():
    """A model that says the last token plus one: fed the right tokens it differs from what it says alone."""
    task = run_config({**NIAH, "preset": "mv", "length": 80}).task

    def successor(tokens, positions):
        last = tokens.gather(-1, positions)
        return torch.nn.functional.one_hot((last + 1) % task.vocab, task.vocab)

    rows = TASKS["niah"].batch(task, [0], "test", 0, 4, CPU)
    free = _greedy(successor, rows, OFF)
    asked = rows.tokens.gather(-1, rows.positions[..., :1])
    assert torch.equal(free, (asked + 1 + torch.arange(task.answer_tokens)) % task.vocab)


@pytest.mark.parametrize(("chosen", "found"), [([3, 4, 1, 2], 2), ([1, 2, 1, 2], 1), ([2, 3, 4, 1], 0)])
def test_a_value_is_found_whole_and_once(chosen, found):
    assert values_found(torch.tensor([[chosen]]), torch.tensor([[[1, 2, 3, 4]]]), 4, 2).tolist() == [found]


def test_exact_match_and_token_accuracy_part_where_answers_are_several_tokens():
    """Half of the sequences have one of seven tokens wrong: half of the answers, 13 of 14 tokens are right."""
    evaluation = EvalSet(run_config(NIAH), [0], "test", 16, CPU)
    (scores,) = evaluation.scores(Oracle(evaluation), OFF)
    for part in (ALL, "depth=0", "depth=100"):
        assert scores[part].accuracy == 0.5
        assert scores[part].token_accuracy == pytest.approx(13 / 14)
        assert scores[part].value_accuracy is None


def test_they_are_one_where_an_answer_is_one_token():
    evaluation = EvalSet(run_config(), [0], "test", 16, CPU)
    (scores,) = evaluation.scores(Oracle(evaluation), OFF)
    assert {part: score.accuracy for part, score in scores.items()} == {ALL: 0.625, "pairs=1": 0.5, "pairs=2": 0.75}
    assert all(score.token_accuracy == score.accuracy for score in scores.values())


def test_further_exams_are_on_test_alone_and_in_no_mean():
    run = run_config(exams={"length": [32, 64]})
    (outcome,) = train_pack([run], device="cpu")
    further = [f"length={length} pairs={pairs}" for length, pairs in product((32, 64), (1, 2))]
    assert list(outcome.test) == [ALL, "pairs=1", "pairs=2", *further]
    assert list(outcome.valid) == [ALL, "pairs=1", "pairs=2"]
    (plain,) = train_pack([run_config()], device="cpu")
    assert {part: outcome.test[part] for part in plain.test} == plain.test
    assert outcome.curve == plain.curve


def test_an_exam_is_the_variants_own_test():
    run = run_config(exams={"length": 32, "pairs": 4})
    evaluation = EvalSet(run, [0, 5], "test", 16, CPU)
    wanted = run.task.model_copy(update={"length": 32, "pairs": (4,)})
    (rows,) = evaluation.slices["length=32 pairs=4"].chunks(10**9)
    assert torch.equal(rows.tokens, TASKS["mqar"].batch(wanted, [0, 5], "test", 0, 16, CPU).tokens)
    assert evaluation.fingerprints.shape == (2, 3 * 16)


@pytest.mark.parametrize("task", [MQAR, NIAH, {"name": "ar", "length": 12}], ids=lambda task: task.get("name", "mqar"))
def test_how_sequences_are_made_and_cut_changes_no_score(monkeypatch, task):
    """Kept or made anew, in one chunk or many: ar's training, that scores other positions, is no matter here."""
    run = run_config(task, exams={"length": 48})
    model = untrained(run, 2)
    whole = EvalSet(run, [0, 1], "test", 16, CPU)
    monkeypatch.setattr("mclab.train.evaluate.KEPT", 0)
    monkeypatch.setattr("mclab.train.evaluate.CHUNK_LOGITS", 500)
    pieces = EvalSet(run, [0, 1], "test", 16, CPU)
    for one, other in zip(whole.scores(model, OFF), pieces.scores(model, OFF), strict=True):
        assert one.keys() == other.keys()
        for part, score in one.items():
            assert score.accuracy == other[part].accuracy
            assert score.loss == pytest.approx(other[part].loss, abs=FP64)
    assert torch.equal(whole.fingerprints.sort().values, pieces.fingerprints.sort().values)


def test_a_chunk_of_a_long_exam_has_fewer_sequences():
    evaluation = EvalSet(run_config(exams={"length": 64}), [0], "test", 40, CPU)
    sizes = {
        part: [rows.tokens.shape[1] for rows in own.chunks(evaluation.tokens)]
        for part, own in evaluation.slices.items()
    }
    assert sizes["pairs=1"] == [16, 16, 8]
    assert sizes["length=64 pairs=1"] == [4] * 10


PLAIN = {"mixer": {"memory": "titans", "aggregate": "none", "chunk": 4}}


@pytest.mark.parametrize(
    ("cache", "changed"),
    [
        ({"post_training": 2}, {"length=32"}),
        ({"post_training": 2, "post_segment": 32}, set()),
        ({"post_training": 1, "post_segment": 28}, {"length=32"}),
        ({"post_training": 1, "post_segment": 8}, {"pairs=1", "pairs=2", "length=32"}),
    ],
    ids=["training length", "never filled", "nearly", "filled"],
)
def test_a_cache_after_training_tells_on_test_where_a_sequence_is_longer_than_its_segment(cache, changed):
    """Trained on 16 tokens without a cache; segments are multiples of the chunk, which the online memory keeps."""
    exams = {"length": 32}
    (plain,) = train_pack([run_config(model=PLAIN, exams=exams)], device="cpu")
    (cached,) = train_pack([run_config(model=PLAIN, exams=exams, **cache)], device="cpu")
    assert cached.valid == plain.valid
    assert cached.curve == plain.curve
    for part, score in plain.test.items():
        differs = cached.test[part].loss != score.loss
        assert differs == any(part.startswith(name) for name in changed) or part == ALL
    assert (cached.test[ALL] == plain.test[ALL]) == ("pairs=1" not in changed)


def test_a_mean_of_memories_after_training_scores_otherwise_than_a_mean_of_outputs():
    """The same weights: nothing differs but the test where states are kept. Two matrices: their mean is no mean of
    reads."""
    exams, cache = {"length": 32}, {"post_training": 2}
    (outputs,) = train_pack([run_config(model=PLAIN, exams=exams, **cache)], device="cpu")
    (memories,) = train_pack([run_config(model=PLAIN, exams=exams, **cache, post_mix="memories")], device="cpu")
    assert memories.curve == outputs.curve
    other = {
        part for part, score in memories.test.items() if score.loss != pytest.approx(outputs.test[part].loss, 1e-5)
    }
    assert other == {"length=32 pairs=1", "length=32 pairs=2"}


def test_what_a_cache_after_training_reads_is_all_that_it_changes():
    """Without one a longer test is that of the model as trained, and with one the model is left as it was."""
    run = run_config(model=PLAIN, exams={"length": 32}, post_training=1)
    model = untrained(run)
    before = EvalSet(run, [0], "valid", 8, CPU).scores(model, OFF)
    test = EvalSet(run, [0], "test", 16, CPU)
    assert test.scores(model, OFF) == test.scores(model, OFF)
    assert EvalSet(run, [0], "valid", 8, CPU).scores(model, OFF) == before


MEMORIES = [
    {"aggregate": aggregate, "gate": gate, "init": init}
    for aggregate, gate, init in product(words("aggregate"), words("gate"), words("init"))
]
MIXERS = (
    [{"segment": 4, **memory} for memory in MEMORIES]
    + [
        {"segment": 3, "memory": memory, "segmentation": segmentation}
        for memory in RULES
        for segmentation in words("segmentation", but=["listed"])
    ]
    + [
        {"name": "attention"},
        {"name": "attention", "window": 6},
    ]
)


@pytest.mark.parametrize("mixer", MIXERS, ids=lambda mixer: "-".join(map(str, mixer.values())))
def test_a_model_is_examined_at_twice_its_length(mixer):
    """What it says about the first half is what it says when that is all that it reads."""
    run = run_config(model={"mixer": mixer, "position": "rotary"}, exams={"length": 32})
    model = untrained(run)
    (scores,) = EvalSet(run, [0], "test", 16, CPU).scores(model, OFF)
    assert all(0 < score.loss < 100 for score in scores.values())
    double = run.test_variants[0].task
    tokens = TASKS["mqar"].batch(double, [0], "test", 0, 8, CPU).tokens
    places = torch.arange(16).expand(1, 8, 16)
    with torch.no_grad():
        long, short = model(tokens, places), model(tokens[..., :16], places)
    torch.testing.assert_close(long, short, atol=FP64, rtol=0)


def test_a_repeat_is_the_same_question_in_the_same_place_whatever_follows_it():
    """With one pair few sequences exist: training at both lengths shows some twice, and never one of the test's."""
    tiny = {"vocab": 16, "length": 16, "pairs": 1}
    run = run_config(tiny, train={"steps": 100, "task": [{"length": 16}, {"length": 32}]}, exams={"length": 32})
    data = TrainData(run, [0], CPU)
    short, long = set[int](), set[int]()
    for batch in data.batches():
        (short if batch.tokens.shape[-1] == 16 else long).update(batch.fingerprints.flatten().tolist())
    assert short & long
    test = set(EvalSet(run, [0], "test", 16, CPU).fingerprints.flatten().tolist())
    assert not test & (short | long)
