"""A stored model's answers as a person reads them, as a program does, and as a picture."""

from collections.abc import Iterator
from statistics import mean
from typing import TYPE_CHECKING, Any

from mclab.report.characters import BLOCKS, Characters, Strip, cells
from mclab.report.text import padded

if TYPE_CHECKING:
    from mclab.predict import Head, Predicted, Query, Sample


def predictions_text(found: "Predicted", marks: Characters) -> str:
    """Every sequence with its answers marked and its gates' strips, how to read them, and the summary."""
    samples = ["\n".join(_sample(found, sample, marks)) for sample in found.samples]
    return "\n\n".join([*samples, "\n".join(_legend(found, marks)), "\n".join(_summary(found))])


def _sample(found: "Predicted", sample: "Sample", marks: Characters) -> Iterator[str]:
    from mclab.sample import row_text

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
    """` ✓`, or ` ✗` and what the model says instead."""
    from mclab.sample import words

    return marks.right if query.right else f"{marks.wrong}{words(found.task, [query.predicted])[0]}"


def label(found: "Predicted", sample: "Sample", query: "Query", marks: Characters) -> str:
    """A query as in the sequence, after its position: `12 ?k2=v17 ✓`."""
    from mclab.sample import marked

    place = f"{query.at:>{len(str(found.task.length))}}"
    return f"{place} {marked(sample.row)[query.at]}{verdict(found, query, marks)}"


def name_of(found: "Predicted", head: "Head") -> str:
    """`layer 1`, and the head where there are several."""
    return f"layer {head.layer}" + f", head {head.head}" * (found.run.model.heads > 1)


def _answer(found: "Predicted", answer: "tuple[Query, ...]", marks: Characters) -> str:
    from mclab.sample import words

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
    from mclab.sample import LEGEND

    yield LEGEND
    yield f"{marks.right.strip()} the model says so, {marks.wrong.strip()} it says what follows instead"
    if found.gateless:
        yield found.gateless
        return
    scale = f"{marks.levels[0]} to {marks.levels[-1]} the gate's weight"
    each = f"segment of {found.mixer.segment} tokens that the query sees"
    if found.mixer.segmentation == "listed":
        each = f"segment, of {', '.join(map(str, found.mixer.segment_lengths))} tokens and so on, that the query sees"
    if found.mixer.segmentation == "log":
        each = f"bucket of 1, 2, 4 and more segments of {found.mixer.segment} tokens, oldest first, and its own segment"
    yield (
        f"a strip has a cell for each {each}: {scale}, "
        f"{marks.zero} not read; [ ] hold what the query needs, the number is their share of the weight"
    )
    if found.mixer.init == "checkpoint":
        yield "init checkpoint: the memories after the marked one hold its content too"


def _summary(found: "Predicted") -> Iterator[str]:
    answers = [answer for sample in found.samples for answer in sample.answers]
    right = sum(all(query.right for query in answer) for answer in answers)
    yield f"{right} of {len(answers)} answers right ({right / len(answers):.3f})"
    for head in found.heads:
        if strips := found.known(head):
            yield (
                f"{name_of(found, head)}: {mean(strip.share for strip in strips):.2f} of the weight lies on "
                f"the segment that holds the answer; {mean(strip.even for strip in strips):.2f} if spread evenly"
            )


def predictions_json(found: "Predicted", run_id: str, folder: str) -> dict[str, Any]:
    """The same for programs; shares are null where nobody knows what a query needs."""
    return {
        "run_id": run_id,
        "folder": folder,
        "accuracy": found.accuracy,
        "gateless": found.gateless,
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
    """The weights of the segments that the query sees."""
    share = strip.share if strip.held else None
    return {
        **head._asdict(),
        "weights": list(strip.weights[: strip.visible]),
        "held": sorted(strip.held),
        "share": share,
    }


def picture(found: "Predicted", form: str) -> bytes:
    """The gates' weights as a picture's content: a panel for each head, a row for each query."""
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
