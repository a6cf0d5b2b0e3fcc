"""Needles in a haystack: its keys and rules, the layout of a sequence, and how many different ones there are."""

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

#: Tokens: three markers, the hexadecimal digits (a number has the first ten), haystack words, key words.
KEY, IS, ASK = 0, 1, 2
DIGITS = 3
WORDS = DIGITS + 16
#: Decimal digits of a number, hexadecimal ones of a uuid.
NUMBER_TOKENS, UUID_TOKENS = 7, 32
#: Needles whose sequences are not counted any more.
PLENTY = 1000


class Shape(NamedTuple):
    """The keys of a config that a preset fills where they are null."""

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
    """Needles `KEY key IS value` in a haystack; `ASK key` at the end, and the value is wanted token by token.

    `length` counts everything: question and fed answer too, all but the answer's last token. The haystack offers
    `places` in a row, one for each needle and each filler token; depth d is the place nearest to d percent of the way
    from the first (0) to the last before the question (100). On valid and test a needle of the key asked first is
    there. In training all needles are placed uniformly, so that no place tells which is asked.
    """

    name: Literal["niah"] = "niah"
    preset: Preset = Field("niah1", description="gives the keys below that are null")
    vocab: int = Field(
        64, ge=43, le=2**16, description="tokens: 3 marks, 16 digits; a third of the rest haystack words, then keys"
    )
    length: int = Field(128, ge=1, le=2**20, description="tokens in a sequence, question and fed answer included")
    depth: Annotated[IntMix, Each(0, 100)] = Field(
        (0, 25, 50, 75, 100),
        description="place of the asked needle on valid and test, in percent, each a slice; in training anywhere",
    )
    haystack: Haystack | None = Field(None, description="a repeated sentence, a Markov language, or further needles")
    key: KeyKind | None = Field(None, description="one word, or 32 hexadecimal digits")
    value: ValueKind | None = Field(None, description="7 decimal digits, or 32 hexadecimal ones")
    needles: int | None = Field(
        None, ge=1, le=2**16, description="keys in the haystack; the least number where further needles fill it"
    )
    values: int | None = Field(
        None, ge=1, le=2**16, description="values of each key, wanted in the order of their appearance"
    )
    asked: int | None = Field(None, ge=1, le=2**16, description="keys that are asked, one after another")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        shape = self.shape
        if shape.asked > shape.needles:
            raise ValueError(
                f"asked: {shape.asked} keys asked, the haystack holds {shape.needles}; "
                f"take asked {shape.needles} or needles {shape.asked}"
            )
        self._check_length(shape)
        words = key_words(self.vocab)
        if shape.key == "word" and self.keys > words:
            fewer = "a smaller length" if shape.haystack == "needles" else f"at most {words} needles"
            raise ValueError(
                f"needles: {self.keys} needles need {self.keys} different keys, vocab {self.vocab} has {words}; "
                f"take vocab {_least_vocab(self.keys)} or {fewer}"
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
            f"length: {total} needle{'s' * (total > 1)} of {self.needle_tokens} tokens and {self.question_tokens} of "
            f"question and fed answer need {least}, got {self.length}; take {least}{fewer}"
        )

    @property
    def shape(self) -> Shape:
        """The preset with what is given in its place."""
        given = {key: value for key in Shape._fields if (value := getattr(self, key)) is not None}
        return PRESETS[self.preset]._replace(**given)

    @property
    def key_tokens(self) -> int:
        """Tokens of a key."""
        return 1 if self.shape.key == "word" else UUID_TOKENS

    @property
    def value_tokens(self) -> int:
        """Tokens of a value."""
        return NUMBER_TOKENS if self.shape.value == "number" else UUID_TOKENS

    @property
    def needle_tokens(self) -> int:
        """Tokens of `KEY key IS value`."""
        return 2 + self.key_tokens + self.value_tokens

    @property
    def turn_tokens(self) -> int:
        """Tokens of `ASK key` and all its values."""
        return 1 + self.key_tokens + self.shape.values * self.value_tokens

    @property
    def question_tokens(self) -> int:
        """Tokens after the haystack: a turn for each asked key, but for the last token of the last answer."""
        return self.shape.asked * self.turn_tokens - 1

    @property
    def answer_tokens(self) -> int:
        """Every value of every asked key, together one answer."""
        return self.shape.asked * self.shape.values * self.value_tokens

    @property
    def smallest(self) -> int:
        """The least length that holds the needles asked for and the question."""
        return self.shape.needles * self.shape.values * self.needle_tokens + self.question_tokens

    @property
    def keys(self) -> int:
        """Different keys in the haystack: `needles`, or as many as fit where further needles fill it."""
        if self.shape.haystack != "needles":
            return self.shape.needles
        return (self.length - self.question_tokens) // (self.needle_tokens * self.shape.values)

    @property
    def filler_tokens(self) -> int:
        """Haystack tokens that are in no needle."""
        return self.length - self.question_tokens - self.keys * self.shape.values * self.needle_tokens

    @property
    def places(self) -> int:
        """Where a needle can be: one place for each needle and each token of filler."""
        return self.keys * self.shape.values + self.filler_tokens

    def place(self, depth: int) -> int:
        """The place nearest to `depth` percent, counted from 0."""
        return (depth * (self.places - 1) + 50) // 100

    @property
    def warnings(self) -> list[str]:
        """Depths that are one place, where little filler leaves few places."""
        at: dict[int, int] = {}
        twice = [
            (at[place], depth) for depth in self.depth if at.setdefault(place := self.place(depth), depth) != depth
        ]
        if not twice:
            return []
        first, other = twice[0]
        return [
            f"task.depth: {first} and {other} are one place of the {self.places} at task.length {self.length}, so that "
            f"their slices are the same; take a larger length or fewer depths"
        ]

    @property
    def slices(self) -> tuple[str, ...]:
        """The depths, as in records and column names."""
        return tuple(f"depth={depth}" for depth in self.depth)

    def only(self, slice_name: str) -> Self:
        """This task at one depth alone. Raises `KeyError` for a name that `slices` does not hold."""
        depth = dict(zip(self.slices, self.depth, strict=True))[slice_name]
        return self.model_copy(update={"depth": (depth,)})

    def space(self) -> int:
        """How many different sequences a depth holds, filler left out (keys x values x places x question)."""
        shape = self.shape
        keys = key_words(self.vocab) if shape.key == "word" else 16**UUID_TOKENS
        values = 10**NUMBER_TOKENS if shape.value == "number" else 16**UUID_TOKENS
        return sequences(keys, values, self.places, (self.keys, shape.values, shape.asked))

    def canonical(self) -> Self:
        """The preset that has most in common, then the first; null for what it has; `needles` where it counts."""
        shape = self._least_shape()
        preset = max(PRESETS, key=lambda name: sum(map(eq, shape, PRESETS[name])))
        rest = {
            key: None if value == getattr(PRESETS[preset], key) else value for key, value in shape._asdict().items()
        }
        changes = {key: value for key, value in {"preset": preset, **rest}.items() if value != getattr(self, key)}
        return self.model_copy(update=changes) if changes else self

    def as_trained(self) -> Self:
        """In training needles are placed anywhere, whatever depths are tested."""
        return self.model_copy(update={"depth": (0,)}).canonical()

    def _least_shape(self) -> Shape:
        """Where further needles fill the haystack, `needles` changes nothing: the presets' 4 if they fit."""
        if self.shape.haystack != "needles":
            return self.shape
        usual = PRESETS["mk2"].needles
        return self.shape._replace(needles=usual if self.shape.asked <= usual <= self.keys else self.shape.asked)


def haystack_words(vocab: int) -> int:
    """Tokens that only filler has, from `WORDS` on."""
    return (vocab - WORDS) // 3


def key_words(vocab: int) -> int:
    """Tokens that only keys have: the last of the vocabulary."""
    return vocab - WORDS - haystack_words(vocab)


def _least_vocab(keys: int) -> int:
    """The smallest vocabulary with so many keys."""
    return next(vocab for vocab in count(WORDS + keys) if key_words(vocab) >= keys)


@cache
def sequences(keys: int, values: int, places: int, counts: tuple[int, int, int]) -> int:
    """How many sequences differ in needles or question: of `counts` n keys with m values each, a asked in order.

    Values are different throughout a sequence. The first place is given (the depth); a draw of everything else in
    order finds each sequence once for every order of a key's needles (the first stays) and of the keys not asked.
    `MANY` where there are more needles than anybody counts.
    """
    n, m, a = counts
    if n * m >= PLENTY:  # ten million values alone fill them in more ways
        return MANY
    ordered = perm(keys, n) * perm(values, n * m) * perm(places - 1, n * m - 1)
    orders: int = factorial(m - 1) * factorial(m) ** (n - 1) * factorial(n - a)
    return ordered // orders
