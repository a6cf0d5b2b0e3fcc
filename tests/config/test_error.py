"""What a message guesses for a word that is not known."""

import pytest

from mclab.config.error import did_you_mean, nearest, suggestion
from mclab.config.parse import unknown

KEYS = ["low", "high", "log", "step"]


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("lgo", KEYS, ["log"]),  # as like to low, but of the same letters
        ("hgih", KEYS, ["high"]),
        ("setp", KEYS, ["step"]),
        ("attn", ["attention", "memory"], ["attention"]),
        ("learning_rate", ["lr", "batch"], ["lr"]),
        ("learning_rate", ["lr", "learning_rates"], ["learning_rates"]),
        ("most", KEYS, []),  # half of its letters are those of "step": no guess
        ("", KEYS, []),
        ("low", [], []),
    ],
)
def test_the_word_that_was_meant(word: str, known: list[str], meant: list[str]) -> None:
    assert nearest(word, known) == meant


def test_several_are_given_the_likeliest_first_and_once() -> None:
    assert nearest("gaet", ["gated", "gate", "date"], 2) == ["gate", "gated"]
    assert nearest("gaet", iter(["gate", "gate"]), 3) == ["gate"]


def test_one_phrase() -> None:
    assert suggestion(["a", "b"]) == "did you mean a or b?"
    assert suggestion([]) == ""
    assert did_you_mean("gaet", ["gate"], "; ") == "; did you mean gate?"
    assert did_you_mean("gaet", ["mixer"], "; ") == ""


def test_a_key_is_not_guessed_from_its_room_alone() -> None:
    assert unknown("model.mixer.zz").startswith("unknown key; the keys of model.mixer are ")
    assert unknown("model_mixer_gate") == "unknown key; did you mean model.mixer.gate?"
