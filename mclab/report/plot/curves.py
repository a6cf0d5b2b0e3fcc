"""Draw learning curves: accuracy and loss on valid against steps, with a line for each row."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mclab.config.strict import ConfigError
from mclab.plan.select import Curve
from mclab.report.plot.figure import legend, legend_columns, sheet
from mclab.report.plot.layout import named
from mclab.report.plot.style import COLOURS, DASHES, MARKERS, MOST_DASHES, set_hover_texts
from mclab.report.table.accuracy import evaluations
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary

METRICS = ("accuracy", "loss")
MOST_LINES = len(COLOURS) * MOST_DASHES
#: The axis of the loss is logarithmic if the largest loss is at least this many times the smallest.
LOG_FROM = 20
#: About how many points of a line have a marker. Markers distinguish lines also without colour.
MARKED = 8
CAPTION = (
    "Lines: mean over seeds on valid, all slices alike; bands: from the lowest seed to the highest. A seed that "
    "stopped early keeps its last value."
)


@dataclass(frozen=True)
class Track:
    """The curve of one metric for a row: at each step the mean, the lowest and the highest value over seeds.

    `lost` holds the step and the value of the last evaluation of each diverged seed.
    """

    steps: list[int]
    mean: list[float]
    low: list[float]
    high: list[float]
    lost: list[tuple[int, float]]


def track(row: Row, curve: Curve, metric: str) -> Track:
    """Return the curve of a row.

    It has the evaluations of finished seeds by step, and the last evaluation of each diverged seed.
    """
    found = {seed: list(evaluations(curve(record.run_id), metric)) for seed, record in row.records.items()}
    done = [own for seed, own in found.items() if row.records[seed].status == "done" and own]
    lost = [own[-1] for seed, own in found.items() if row.records[seed].status == "diverged" and own]
    steps = sorted({step for own in done for step, _ in own})
    values = [[value for own in done if (value := _value_at(own, step)) is not None] for step in steps]
    return Track(steps, [fmean(v) for v in values], [min(v) for v in values], [max(v) for v in values], lost)


def _value_at(found: Sequence[tuple[int, float]], step: int) -> float | None:
    """Return the value at `step`, or the last one before it; `None` if there is none."""
    return next((value for at, value in reversed(found) if at <= step), None)


def curves_figure(summary: Summary, curve: Curve) -> Figure:
    """Draw two panels, accuracy and loss. Raises `ConfigError` if no curves are stored or there are too many."""
    tracks = {metric: [track(row, curve, metric) for row in summary.rows] for metric in METRICS}
    shown = [place for place in range(len(summary.rows)) if any(_drawn(tracks[metric][place]) for metric in METRICS)]
    if not shown:
        raise ConfigError("curves: no run has a stored curve")
    if len(shown) > MOST_LINES:
        raise ConfigError(f"curves: the plot would have {len(shown)} lines, but at most {MOST_LINES} can be told apart")
    labels = [named(summary.rows[place].label) for place in shown]
    across = legend_columns(labels)
    lost = any(track.lost for found in tracks.values() for track in found)
    caption = CAPTION + " ×: a seed's last evaluation before it diverged." * lost
    titles = ["accuracy on valid", "loss on valid (nats)"]
    page = sheet(summary, 3.0, -(-len(labels) // across), titles, caption, share=False, dotted=False)
    for panel, metric in zip(page.panels, METRICS, strict=True):
        for number, place in enumerate(shown):
            _line(panel, tracks[metric][place], named(summary.rows[place].label), number)
        panel.set_xlabel("step")
    _scales(page.panels, [track for track in tracks["loss"] if track.mean])
    legend(page, across)
    return page.figure


def _drawn(found: Track) -> bool:
    return bool(found.steps or found.lost)


def _line(panel: Axes, found: Track, label: str, number: int) -> None:
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS)]
    every = max(1, len(found.steps) // MARKED)
    (line,) = panel.plot(
        found.steps,
        found.mean,
        color=colour,
        linestyle=dash,
        linewidth=1.5,
        label=label,
        marker=MARKERS[number % len(MARKERS)],
        markersize=3.6,
        markevery=every,
    )
    marked = list(zip(found.steps, found.mean, found.low, found.high, strict=True))[::every]
    set_hover_texts(
        line, [f"{label}, step {step}: {mean:.3f} [{low:.3f}, {high:.3f}]" for step, mean, low, high in marked]
    )
    panel.fill_between(found.steps, found.low, found.high, color=colour, alpha=0.15, linewidth=0)
    panel.plot(*zip(*found.lost, strict=True) if found.lost else ([], []), "x", color=colour, markersize=5)


def _scales(panels: Sequence[Axes], losses: Sequence[Track]) -> None:
    accuracy, loss = panels
    top = accuracy.get_ylim()[1]
    accuracy.set_ylim(-0.03, 1.03 if top > 0.5 else max(0.3, top))
    least, most = (pick((v for t in losses for v in t.mean), default=1.0) for pick in (min, max))
    if least > 0 and most / least >= LOG_FROM:
        loss.set_yscale("log")
        loss.yaxis.set_major_formatter("{x:g}")
