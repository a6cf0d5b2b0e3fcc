"""The table as LaTeX: characters, layout, and that it can be set."""

import re
import shutil
import subprocess

import pytest

from mclab.report.prose.notes import notes
from mclab.report.table.latex import latex_escape
from mclab.report.table.summary import summarise
from mclab.report.table.tex import tex
from tests.report.plans import GATE, SEGMENT, gates, make_plan, store

NASTY = (
    'a_b & 50% #1 $x$ ^2 ~ \\n {x} "q" `b` <y> |z| --seeds ?` ± × γ − – … é ü ç Ł Ω Η ο ᵀ ≥ → ½ Σ [a] *b 中 😀 \x07 x̂'
)
#: Every command that the table may use, and no more: what stands in the template and in the letters.
KNOWN = {
    *(
        "begin",
        "end",
        "caption",
        "label",
        "centering",
        "footnotesize",
        "scriptsize",
        "setlength",
        "tabcolsep",
        "linewidth",
    ),
    *(
        "textbf",
        "underline",
        "dagger",
        "p",
        "tabular",
        "toprule",
        "midrule",
        "bottomrule",
        "usepackage",
        "textbackslash",
        "textasciitilde",
    ),
    *("textasciicircum", "textless", "textgreater", "textbar", "textasciigrave", "ldots", "pm", "times", "gamma", "c"),
    *("L", "Omega", "mathrm", "geq", "to", "frac", "Sigma"),
}


def check(text):
    """What pdflatex would stumble over: open groups, open environments, bare specials, commands of no package."""
    assert text.isascii()
    body = re.sub(r"(?<!\\)%.*", "", text)
    bare = re.sub(r"\\[\\{}$&#%_^~'\"`=.]", "", body)
    assert set(re.findall(r"\\([A-Za-z]+)", bare)) <= KNOWN
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert sorted(re.findall(r"\\begin\{(\w+)\}", body)) == sorted(re.findall(r"\\end\{(\w+)\}", body))
    outside = re.sub(r"\$[^$]*\$", "", bare)
    assert not set("#^~_") & set(outside)
    for table in re.findall(
        r"\\begin\{tabular\}\{((?:[lr]|p\{0\.\d+\\linewidth\})+)\}(.*?)\\end\{tabular\}", body, re.S
    ):
        rows = [line for line in table[1].splitlines() if line.endswith("\\\\")]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(re.sub(r"\{.*?\}", "", table[0]))}
        assert not any(row.lstrip().startswith(("[", "*")) for row in rows)


def nasty():
    names = ["[full]", f"- context {NASTY}", "*star"]
    plan = make_plan([{}, {GATE: "input"}, {GATE: "none"}], seeds=range(3), names=names, question=NASTY, named=True)
    results = [[1.0, 0.995, 1.0], [0.4, "diverged", 0.7], [1.0, 1.0, 0.99]]
    return summarise(plan, store(plan, results).get)


def large():
    plan = make_plan([{SEGMENT: n} for n in range(1, 71)], seeds=range(3))
    return summarise(plan, store(plan, [[0.5, 0.6, 0.7]] * 70).get)


@pytest.mark.parametrize(
    ("text", "as_set"),
    [
        ("a_b & 5% #1 $x", r"a\_b \& 5\% \#1 \$x"),
        ("\\ { } ~ ^", r"\textbackslash{} \{ \} \textasciitilde{} \textasciicircum{}"),
        ("± × γ − – …", r"$\pm$ $\times$ $\gamma$ $-$ -- \ldots{}"),
        ("é Ç ő", r"\'{e} \c{C} \H{o}"),
        ("Ω Η λ ς", r"$\Omega$ $\mathrm{H}$ $\lambda$ $\varsigma$"),
        ("--seeds", "-{}-seeds"),
        ("中\x07\nnext", r"[U+4E2D]\textbackslash{}x07 next"),
    ],
)
def test_every_character_is_set_or_named(text, as_set):
    assert latex_escape(text) == as_set


def body(text):
    """What stands between the rules of the first table, a list of cells a row."""
    lines = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    return [line.removesuffix(r" \\").split(" & ") for line in lines]


def test_it_is_one_table_with_the_best_in_bold_and_stars():
    given = gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0], [0.2, 0.3, 0.41])
    text = tex(summarise(*given))
    check(text)
    assert text.count(r"\begin{tabular}") == 1
    rows = body(text)
    assert [row[0] for row in rows] == ["context", "input", "none"]
    assert rows[1][1] == r"\textbf{0.800} $\pm$ 0.200"
    assert rows[0][1] == r"0.600 $\pm$ 0.100"
    assert rows[2][1] == r"0.303 $\pm$ 0.105$^{***}$"  # differences -0.30, -0.30, -0.29
    assert [row[2] for row in rows][1].startswith(r"\textbf{")
    assert r"$+$0.200 [$-$0.048, $+$0.448]" in text


def test_the_second_is_underlined_where_asked():
    given = gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0], [0.2, 0.3, 0.41])
    assert r"\underline" not in tex(summarise(*given))
    text = tex(summarise(*given), underline=True)
    check(text)
    assert body(text)[0][1] == r"\underline{0.600} $\pm$ 0.100"
    assert "underlined: second." in text


def test_equal_means_are_all_the_best_and_a_single_row_is_not():
    rows = body(tex(summarise(*gates([0.5, 0.6, 0.7], [0.7, 0.6, 0.5]))))
    assert all(row[1].startswith(r"\textbf{0.600}") for row in rows)
    assert r"\textbf" not in tex(summarise(*gates([0.5, 0.6, 0.7])))


def test_the_caption_has_n_test_and_correction():
    summary = summarise(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0], [0.5, "diverged", 0.7]))
    text = tex(summary, notes=notes(summary))
    caption = re.search(r"\\caption\{(.*)\}", text)[1]
    assert caption.startswith("Does a cached memory need a gate that sees the segment? Test accuracy")
    assert "(n = 3); a diverged run counts as 0." in caption
    assert "two-sided paired t test over seeds, Holm-corrected over 2 comparisons." in caption
    assert "% none, seed 1: diverged at step 120." in text
    assert "No test was made" in tex(summarise(*gates([0.5, 0.6], [0.6, 0.8])))


def test_a_row_without_a_verdict_has_a_dagger():
    over = tuple({"train.lr": lr} for lr in (1e-3, 1e-2, 1e-1))
    plan = make_plan([{GATE: "context"}, {GATE: "none"}], seeds=range(3), over=over)
    records = {}
    for place, values in enumerate(([0.9, 0.8, 0.7], [0.5] * 3, [0.5] * 3)):
        records |= store(plan, [values] * 2, place)
    text = tex(summarise(plan, records.get))
    assert r"$^\dagger$" in body(text)[0][1]
    assert r"$\dagger$: no verdict (edge of range)." in text


def test_what_is_too_wide_is_left_to_the_files():
    plan = make_plan([{GATE: "context"}, {GATE: "none"}], base={"task.pairs": list(range(1, 17))}, seeds=range(3))
    text = tex(summarise(plan, store(plan, [[0.5, 0.6, 0.7]] * 2).get))
    check(text)
    assert len(body(text)[0]) < 8
    assert "Accuracy on 16 slices is left to the files." in text


def test_nothing_stands_that_latex_cannot_read():
    check(tex(nasty()))
    check(tex(large()))


def test_a_table_longer_than_a_page_goes_on_in_another():
    text = tex(large())
    assert text.count(r"\begin{table}") == text.count(" (continued)}") + 1 > 1
    assert len(set(re.findall(r"\\label\{(.*?)\}", text))) == text.count(r"\begin{table}")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine; its rules are checked above")
def test_pdflatex_sets_it(tmp_path):
    usual = summarise(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0], [0.5, "diverged", 0.7]))
    for name, summary in (("one", nasty()), ("two", large()), ("three", usual)):
        (tmp_path / f"{name}.tex").write_text(tex(summary))
    page = r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{one}\input{two}\input{three}"
    (tmp_path / "page.tex").write_text(page + r"\end{document}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Missing character" not in done.stdout
    assert "too large for page" not in done.stdout
    assert "Overfull" not in done.stdout.partition("(./three.tex")[2]
