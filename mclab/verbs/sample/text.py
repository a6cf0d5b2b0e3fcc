"""Show sequences as text, and a stored model's answers as text, as JSON and as a picture."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

from mclab.report.characters import BLOCKS, Characters, Strip, cells
from mclab.report.text import aligned, padded
from mclab.verbs.sample.task import Row, words

if TYPE_CHECKING:
    from mclab.verbs.sample.answers import Head, Predicted, Query, Sample

#: The number of tokens in a printed line.
LINE = 16
LEGEND = "k key, v value, . filler; ?x=y is a query: the model has read the sequence up to x and must answer y"
#: The further meanings that signs have in the printed sequences of each task.
MARKS = {
    "ar": "| ends the pairs and is followed by the key that is asked for",
    "text": "every byte is a token, and each next one is to be predicted; bytes that are no letter or sign are written "
    "as codes, e.g. \\x0a",
    "facts": "a b: a key of two tokens; the model must answer its value v, which is not in the sequence",
    "niah": "KEY k IS ...: a needle, that is a key and its value, digit by digit; ASK k: the question for the value of "
    "that key (if it has several, for all in their order); .w a word of the haystack",
}


def recall_text(found: Mapping[str, Mapping[str, float]]) -> str:
    """Return the result of `without_recall` as a table: a line per predictor, a column for train and each slice."""
    named = [[name, *(f"{part[name]:.3f}" for part in found.values())] for name in found["train"]]
    table = aligned([["", *found], *named], right=range(1, len(found) + 1))
    return f"accuracy of predictors that do not read the key, on train and on the slices of test:\n{table}"


def as_text(rows: Sequence[Row]) -> str:
    """Return the sequences in lines of 16 tokens, a legend of the signs, and how many queries are contradicted."""
    contradicted, asked = sum(row["contradicted"] for row in rows), sum(len(row["answers"]) for row in rows)
    flaw = (
        f"{contradicted} of {asked} queries are contradicted: their key is also in the filler "
        "before, with another token"
    )
    marks = [MARKS[row["task"]] for row in rows[:1] if row["task"] in MARKS]
    legend = [LEGEND, *marks, *[f"{flaw} after it"] * bool(contradicted)]
    return "\n\n".join([*map(row_text, rows), "\n".join(legend)])


def row_text(row: Row, remarks: Mapping[int, str] | None = None) -> str:
    """Return one sequence as text: a heading, then lines of 16 tokens.

    `remarks` (position -> text) are appended to their tokens.
    """
    texts = [word + (remarks or {}).get(at, "") for at, word in enumerate(marked(row))]
    width = max(map(len, texts)) + 1
    beyond = ", every next token is scored" * any(not _is_asked(row, at) for at in row["answers"])
    of_slice = f", {row['slice']}" if row["slice"] else ""
    lines = [f"sample {row['sample']} of {row['split']}, seed {row['seed']}{of_slice}{beyond}"]
    for start in range(0, len(texts), LINE):
        lines.append(f"{start:5}  " + "".join(f"{text:<{width}}" for text in texts[start : start + LINE]).rstrip())
    return "\n".join(lines)


def marked(row: Row) -> list[str]:
    """Return the names of the row's tokens: `.` is prepended to filler, and `?name=answer` shows that an answer is
    wanted.

    The filler token 0 is a `.` alone.
    """
    return [_marked(row, at) for at in range(len(row["words"]))]


def _marked(row: Row, at: int) -> str:
    word = row["words"][at]
    if at in row["wanted"] and _is_asked(row, at):
        return f"?{word}={row['wanted'][at]}"
    if row["roles"][at] == "filler":
        return f".{word}" if row["tokens"][at] else "."
    return str(word)


def _is_asked(row: Row, at: int) -> bool:
    """Return whether an answer is wanted at position `at`; `False` for positions that only training scores."""
    return row["roles"][at] in ("query", "answer")


def predictions_text(found: "Predicted", marks: Characters) -> str:
    """Return all sequences with the answers marked and the gates' weights as strips, then a legend and a summary."""
    samples = ["\n".join(_sample(found, sample, marks)) for sample in found.samples]
    return "\n\n".join([*samples, "\n".join(_legend(found, marks)), "\n".join(_summary(found))])


def _sample(found: "Predicted", sample: "Sample", marks: Characters) -> Iterator[str]:
    yield row_text(sample.row, {query.at: verdict(found, query, marks) for query in sample.queries})
    if found.task.answer_tokens > 1:
        yield from (_answer(found, answer, marks) for answer in sample.answers)
    for head in found.heads:
        yield ""
        yield f"       {name_of(found, head)}"
        labels = padded([label(found, sample, query, marks) for query in sample.queries])
        for text, query in zip(labels, sample.queries, strict=True):
            yield from _strip(f"       {text}", query, head, marks)


def verdict(found: "Predicted", query: "Query", marks: Characters) -> str:
    """Return ` ✓` for a right answer, ` ✗` and the predicted token for a wrong one."""
    return marks.right if query.right else f"{marks.wrong}{words(found.task, [query.predicted])[0]}"


def label(found: "Predicted", sample: "Sample", query: "Query", marks: Characters) -> str:
    """Return the label of a query: position, name and result, e.g. `12 ?k2=v17 ✓`."""
    place = f"{query.at:>{len(str(found.task.length))}}"
    return f"{place} {marked(sample.row)[query.at]}{verdict(found, query, marks)}"


def name_of(found: "Predicted", head: "Head") -> str:
    """Return `layer 1`, or `layer 1, head 0` if the model has several heads."""
    return f"layer {head.layer}" + f", head {head.head}" * (found.run.model.heads > 1)


def _answer(found: "Predicted", answer: "tuple[Query, ...]", marks: Characters) -> str:
    right = all(query.right for query in answer)
    wanted, said = (
        " ".join(words(found.task, [getattr(query, name) for query in answer])) for name in ("wanted", "predicted")
    )
    return f"       answer{marks.right if right else marks.wrong}  {wanted}" + f"  said {said}" * (not right)


def _strip(before: str, query: "Query", head: "Head", marks: Characters) -> Iterator[str]:
    strip = query.strips[head]
    first, *more = cells(strip, marks)
    share = f"  {strip.share:4.2f}" if strip.held else ""
    yield f"{before}  {first}{share}"
    yield from (f"{'':{len(before)}}  {line}".rstrip() for line in more)


def _legend(found: "Predicted", marks: Characters) -> Iterator[str]:
    yield LEGEND
    yield f"{marks.right.strip()} the model answers right; {marks.wrong.strip()} it answers what follows instead"
    if found.why_no_gate:
        yield found.why_no_gate
        return
    scale = f"{marks.levels[0]} to {marks.levels[-1]} the gate's weight"
    each = f"segment of {found.mixer.segment} tokens that the query sees"
    if found.mixer.segmentation == "listed":
        each = f"segment, of {', '.join(map(str, found.mixer.segment_lengths))} tokens and so on, that the query sees"
    if found.mixer.segmentation == "log":
        each = f"bucket of 1, 2, 4 and more segments of {found.mixer.segment} tokens, oldest first, and its own segment"
    yield (
        f"a strip has one cell for each {each}: {scale}, "
        f"{marks.zero} not read; [ ] enclose the memory that the query needs, and the number is its share of the weight"
    )
    if found.mixer.init == "checkpoint":
        yield "with init checkpoint, the memories after the marked one contain it too"


def _summary(found: "Predicted") -> Iterator[str]:
    answers = [answer for sample in found.samples for answer in sample.answers]
    right = sum(all(query.right for query in answer) for answer in answers)
    yield f"{right} of {len(answers)} answers right ({right / len(answers):.3f})"
    for head in found.heads:
        if strips := found.known(head):
            yield (
                f"{name_of(found, head)}: {mean(strip.share for strip in strips):.2f} of the weight is on "
                f"the segment that holds the answer; {mean(strip.even for strip in strips):.2f} if spread evenly"
            )


def predictions_json(found: "Predicted", run_id: str, folder: str) -> dict[str, Any]:
    """Return the content of `predictions_text` for JSON.

    A share is null if it is unknown which memory holds the answer.
    """
    return {
        "run_id": run_id,
        "folder": folder,
        "accuracy": found.accuracy,
        "gateless": found.why_no_gate,
        "gates": [{**head._asdict(), **_shares(found.known(head))} for head in found.heads],
        "samples": [{**sample.row, "queries": list(_queries_json(sample))} for sample in found.samples],
    }


def _shares(strips: list[Strip]) -> dict[str, float | None]:
    if not strips:
        return {"share": None, "even": None}
    return {"share": mean(strip.share for strip in strips), "even": mean(strip.even for strip in strips)}


def _queries_json(sample: "Sample") -> Iterator[dict[str, Any]]:
    for number, answer in enumerate(sample.answers):
        for query in answer:
            yield {
                "answer": number,
                **{name: getattr(query, name) for name in ("at", "wanted", "predicted", "right")},
                "needs": list(query.needs),
                "gates": [_gate_json(head, strip) for head, strip in query.strips.items()],
            }


def _gate_json(head: "Head", strip: Strip) -> dict[str, Any]:
    """Return for JSON the weights of the memories that the query sees, those that hold the answer, and their share."""
    share = strip.share if strip.held else None
    return {
        **head._asdict(),
        "weights": list(strip.weights[: strip.visible]),
        "held": sorted(strip.held),
        "share": share,
    }


def picture(found: "Predicted", form: str) -> bytes:
    """Return a picture of the gates' weights as the content of a file: a panel per head, a row per query.

    `form` is png, svg or pdf.
    """
    from mclab.report.plot.gates import GatePanel, gate_map

    asked = [(sample, query) for sample in found.samples for query in sample.queries]
    several = len(found.samples) > 1
    labels = [
        f"sample {sample.row['sample']}: " * several + label(found, sample, query, BLOCKS) for sample, query in asked
    ]
    panels = [GatePanel(name_of(found, head), [query.strips[head] for _, query in asked]) for head in found.heads]
    right = [query.right for _, query in asked]
    title = f"Where the gate looks: aggregate {found.mixer.aggregate}, gate {found.mixer.gate}"
    return gate_map(title, labels, right, panels, form)
