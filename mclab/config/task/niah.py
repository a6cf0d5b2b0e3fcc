"""Needles in a haystack: its keys, its rules, the layout of a sequence, and the number of different sequences."""

from functools import cache
from itertools import count
from math import factorial, perm
from operator import eq
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from mclab.config.strict import Each, IntMix
from mclab.config.task.base import MANY, TaskConfig

Preset = Literal["niah1", "niah2", "niah3", "mk1", "mk2", "mk3", "mv", "mq"]
Haystack = Literal["noise", "text", "needles"]
KeyKind = Literal["word", "uuid"]
ValueKind = Literal["number", "uuid"]

#: The vocabulary: three markers, the hexadecimal digits (of which a number uses the first ten), haystack words, key
#: words.
KEY, IS, ASK = 0, 1, 2
DIGITS = 3
WORDS = DIGITS + 16
#: The number of tokens (digits) of a number, which is decimal, and of a uuid, which is hexadecimal.
NUMBER_TOKENS, UUID_TOKENS = 7, 32
#: From this number of needles on, sequences are not counted, since there are more than `MANY`.
PLENTY = 1000


class Shape(NamedTuple):
    """The config keys that take their values from the preset if they are null."""

    haystack: Haystack
    key: KeyKind
    value: ValueKind
    needles: int
    values: int
    asked: int


#: RULER's tasks by their common names (arXiv 2404.06654, appendix B).
PRESETS: dict[Preset, Shape] = {
    "niah1": Shape("noise", "word", "number", 1, 1, 1),
    "niah2": Shape("text", "word", "number", 1, 1, 1),
    "niah3": Shape("text", "word", "uuid", 1, 1, 1),
    "mk1": Shape("text", "word", "number", 4, 1, 1),
    "mk2": Shape("needles", "word", "number", 4, 1, 1),
    "mk3": Shape("needles", "uuid", "uuid", 4, 1, 1),
    "mv": Shape("text", "word", "number", 1, 4, 1),
    "mq": Shape("text", "word", "number", 4, 1, 4),
}


class NiahTask(TaskConfig):
    """Needles `KEY key IS value` in a haystack, then `ASK key`; the model must give the value token by token.

    `length` counts all input tokens: haystack, question, and the answer that is fed to the model, without its last
    token. The haystack has a row of `places`, one for each needle and each filler token. Depth d is the place nearest
    to d percent of the way from the first place (0) to the last place before the question (100). On valid and test, a
    needle of the key that is asked first is at this depth. In training all needles are placed uniformly, so that the
    place of a needle does not tell whether it is asked.
    """

    name: Literal["niah"] = "niah"
    preset: Preset = Field("niah1", description="a task of RULER by its name; it sets those keys below that are null")
    vocab: int = Field(
        64, ge=43, le=2**16, description="tokens: 3 marks, 16 digits; a third of the rest haystack words, then keys"
    )
    length: int = Field(
        128, ge=1, le=2**20, description="number of tokens in a sequence, question and fed answer included"
    )
    depth: Annotated[IntMix, Each(0, 100)] = Field(
        (0, 25, 50, 75, 100),
        description="place of the asked needle in valid and test, in percent of the haystack; each depth is a slice; "
        "in training the place is random",
    )
    haystack: Haystack | None = Field(
        None, description="what the haystack is made of: a repeated sentence, a Markov language, or further needles"
    )
    key: KeyKind | None = Field(None, description="what a key is: one word, or 32 hexadecimal digits")
    value: ValueKind | None = Field(None, description="what a value is: 7 decimal digits, or 32 hexadecimal ones")
    needles: int | None = Field(
        None, ge=1, le=2**16, description="number of keys in the haystack; with haystack needles, the smallest number"
    )
    values: int | None = Field(
        None,
        ge=1,
        le=2**16,
        description="number of values of each key; all are asked for, in the order of their appearance",
    )
    asked: int | None = Field(None, ge=1, le=2**16, description="number of keys that are asked, one after another")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        shape = self.shape
        if shape.asked > shape.needles:
            raise ValueError(
                f"asked: {shape.asked} keys are asked, but the haystack has only {shape.needles}; take asked "
                f"{shape.needles} or needles {shape.asked}"
            )
        self._check_length(shape)
        words = key_words(self.vocab)
        if shape.key == "word" and self.keys > words:
            fewer = "a smaller length" if shape.haystack == "needles" else f"at most {words} needles"
            raise ValueError(
                f"needles: {self.keys} needles need {self.keys} different keys, but vocab {self.vocab} has only "
                f"{words}; take vocab {_least_vocab(self.keys)} or {fewer}"
            )
        return self

    def _check_length(self, shape: Shape) -> None:
        least = self.smallest
        if self.length >= least:
            return
        fitting = (self.length - self.question_tokens) // (self.needle_tokens * shape.values)
        fewer = f" or at most {fitting} needles" if fitting >= shape.asked else ""
        total = shape.needles * shape.values
        raise ValueError(
            f"length: {total} needle{'s' * (total > 1)} of {self.needle_tokens} tokens, with {self.question_tokens} "
            f"tokens of question and fed answer, need length {least}, got {self.length}; take {least}{fewer}"
        )

    @property
    def shape(self) -> Shape:
        """The preset's values, replaced by the keys that are given."""
        given = {key: value for key in Shape._fields if (value := getattr(self, key)) is not None}
        return PRESETS[self.preset]._replace(**given)

    @property
    def key_tokens(self) -> int:
        """The number of tokens of a key."""
        return 1 if self.shape.key == "word" else UUID_TOKENS

    @property
    def value_tokens(self) -> int:
        """The number of tokens of a value."""
        return NUMBER_TOKENS if self.shape.value == "number" else UUID_TOKENS

    @property
    def needle_tokens(self) -> int:
        """The number of tokens of a needle, `KEY key IS value`."""
        return 2 + self.key_tokens + self.value_tokens

    @property
    def turn_tokens(self) -> int:
        """The number of tokens of one question and its answer: `ASK key` and all values of the key."""
        return 1 + self.key_tokens + self.shape.values * self.value_tokens

    @property
    def question_tokens(self) -> int:
        """The number of tokens after the haystack: `turn_tokens` for each asked key, without the last answer token."""
        return self.shape.asked * self.turn_tokens - 1

    @property
    def answer_tokens(self) -> int:
        """The number of tokens of one answer, which consists of all values of all asked keys."""
        return self.shape.asked * self.shape.values * self.value_tokens

    @property
    def smallest(self) -> int:
        """The smallest length that can hold `needles` needles with all their values, and the question."""
        return self.shape.needles * self.shape.values * self.needle_tokens + self.question_tokens

    @property
    def keys(self) -> int:
        """The number of different keys in the haystack:

        `needles`, or as many as fit if the filler consists of needles.
        """
        if self.shape.haystack != "needles":
            return self.shape.needles
        return (self.length - self.question_tokens) // (self.needle_tokens * self.shape.values)

    @property
    def filler_tokens(self) -> int:
        """The number of haystack tokens that are in no needle."""
        return self.length - self.question_tokens - self.keys * self.shape.values * self.needle_tokens

    @property
    def places(self) -> int:
        """The number of places where a needle can be: one for each needle and each filler token."""
        return self.keys * self.shape.values + self.filler_tokens

    def place(self, depth: int) -> int:
        """Return the place nearest to `depth` percent, counted from 0."""
        return (depth * (self.places - 1) + 50) // 100

    @property
    def warnings(self) -> list[str]:
        """A warning if two depths fall on the same place, since there are too few places."""
        at: dict[int, int] = {}
        twice = [
            (at[place], depth) for depth in self.depth if at.setdefault(place := self.place(depth), depth) != depth
        ]
        if not twice:
            return []
        first, other = twice[0]
        return [
            (
                f"task.depth: depths {first} and {other} fall on the same one of the {self.places} places at "
                f"task.length {self.length}, so that their slices are the same; take a larger length or fewer depths"
            )
        ]

    @property
    def slices(self) -> tuple[str, ...]:
        """The names of the slices, one for each depth: `depth=50`."""
        return tuple(f"depth={depth}" for depth in self.depth)

    def only(self, slice_name: str) -> Self:
        """Return this task at one depth alone. Raises `KeyError` for a name that is not in `slices`."""
        depth = dict(zip(self.slices, self.depth, strict=True))[slice_name]
        return self.model_copy(update={"depth": (depth,)})

    def space(self) -> int:
        """Return the number of different sequences at one depth: choices of keys, values, places and question.

        Sequences that differ only in filler count once.
        """
        shape = self.shape
        keys = key_words(self.vocab) if shape.key == "word" else 16**UUID_TOKENS
        values = 10**NUMBER_TOKENS if shape.value == "number" else 16**UUID_TOKENS
        return sequences(keys, values, self.places, (self.keys, shape.values, shape.asked))

    def canonical(self) -> Self:
        """Return the canonical form of this task.

        It has the preset that agrees in the most keys (the first such preset), null for all keys that agree, and a
        fixed value of `needles` if that has no effect.
        """
        shape = self._least_shape()
        preset = max(PRESETS, key=lambda name: sum(map(eq, shape, PRESETS[name])))
        rest = {
            key: None if value == getattr(PRESETS[preset], key) else value for key, value in shape._asdict().items()
        }
        changes = {key: value for key, value in {"preset": preset, **rest}.items() if value != getattr(self, key)}
        return self.model_copy(update=changes) if changes else self

    def as_trained(self) -> Self:
        """Return the task for training, with a fixed `depth`: needles can be at any place in training."""
        return self.model_copy(update={"depth": (0,)}).canonical()

    def _least_shape(self) -> Shape:
        """Return `shape`, with a fixed value of `needles` if the haystack consists of needles, so that it has no
        effect.

        The value is the presets' 4 if possible, else `asked`.
        """
        if self.shape.haystack != "needles":
            return self.shape
        usual = PRESETS["mk2"].needles
        return self.shape._replace(needles=usual if self.shape.asked <= usual <= self.keys else self.shape.asked)


def haystack_words(vocab: int) -> int:
    """Return how many tokens are haystack words, which occur only in filler; they begin at `WORDS`."""
    return (vocab - WORDS) // 3


def key_words(vocab: int) -> int:
    """Return how many tokens are key words; they are the last ones of the vocabulary."""
    return vocab - WORDS - haystack_words(vocab)


def _least_vocab(keys: int) -> int:
    """Return the smallest vocabulary that has `keys` key words."""
    return next(vocab for vocab in count(WORDS + keys) if key_words(vocab) >= keys)


@cache
def sequences(keys: int, values: int, places: int, counts: tuple[int, int, int]) -> int:
    """Return the number of sequences that differ in needles or question.

    `counts` is (n, m, a): n keys with m values each, of which a keys are asked in order. All values of a sequence are
    different. The place of the first needle is given by the depth. If all other choices are counted as ordered, a
    sequence is counted several times: once for every order of the needles of each key (except for the needle at the
    given depth), and once for every order of the keys that are not asked. The result is `MANY` for at least `PLENTY`
    needles.
    """
    n, m, a = counts
    if n * m >= PLENTY:  # the ten million values alone give more than MANY sequences
        return MANY
    ordered = perm(keys, n) * perm(values, n * m) * perm(places - 1, n * m - 1)
    orders: int = factorial(m - 1) * factorial(m) ** (n - 1) * factorial(n - a)
    return ordered // orders
