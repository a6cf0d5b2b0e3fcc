"""The table as LaTeX: characters, layout, and that it can be set."""

import re
import shutil
import subprocess

import pytest

from mclab.report.letters import escape
from mclab.report.summary import summarise
from mclab.report.tex import tex
from tests.report.bench import GATE, SEGMENT, gates, make_plan, store

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
        "par",
    ),
    *("medskip", "toprule", "midrule", "bottomrule", "usepackage", "textbackslash", "textasciitilde"),
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
    for table in re.findall(r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", body, re.S):
        rows = [line for line in table[1].splitlines() if line.endswith("\\\\")]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(table[0])}
        assert not any(row.lstrip().startswith(("[", "*")) for row in rows)


def nasty():
    names = ["[full]", f"- context {NASTY}", "*star"]
    plan = make_plan([{}, {GATE: "input"}, {GATE: "none"}], seeds=range(3), names=names, question=NASTY, named=True)
    results = [[1.0, 0.995, 1.0], [0.4, "diverged", 0.7], [1.0, 1.0, 0.99]]
    return summarise(plan, store(plan, results).get)


def large():
    plan = make_plan([{SEGMENT: n} for n in range(1, 31)], seeds=range(3))
    return summarise(plan, store(plan, [[0.5, 0.6, 0.7]] * 30).get)


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
    assert escape(text) == as_set


def test_a_table_says_all_that_the_markdown_does():
    text = tex(summarise(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0], [0.5, "diverged", 0.7])))
    assert r"\caption{Does a cached memory need a gate that sees the segment?}" in text
    assert "context & 0.600 $\\pm$ 0.100 (3) & [0.352, 0.848] & baseline" in text
    assert r"$+$0.200 [$-$0.048, $+$0.448]" in text
    assert "Holm-adjusted over 2 rows." in text
    assert "none, seed 1: diverged at step 120." in text
    assert "pairs=4" in text
    check(text)


def test_marks_are_in_the_table_and_explained():
    text = tex(nasty())
    assert "(ceiling)" in text.split(r"\begin{minipage}")[0]
    assert "(ceiling), in csv ceiling: row and baseline both reach 0.99" in text.split(r"\begin{minipage}")[1]
    over = tuple({"train.lr": lr} for lr in (1e-3, 1e-2, 1e-1))
    plan = make_plan([{GATE: "context"}], seeds=range(2), over=over)
    records = store(plan, [[0.9] * 2], 0) | store(plan, [[0.5] * 2], 1) | store(plan, [[0.5] * 2], 2)
    text = tex(summarise(plan, records.get))
    assert "0.001 (edge)" in text
    assert "Widen the range." in text


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
