"""mclab list: the stored runs of a folder."""

from pathlib import Path

from tests.commands import (
    fine,
)


def test_a_list_is_aligned_and_its_json_says_all(finished: Path) -> None:
    listed = fine("list", finished)
    head, *rows = listed.out.splitlines()
    assert head.split() == [
        "run_id",
        "status",
        "seed",
        "gate",
        "valid_accuracy",
        "test_accuracy",
        "steps_done",
        "wall_s",
    ]
    assert [row.split()[1:4] for row in rows] == [
        ["done", "0", "context"], ["done", "1", "context"], ["done", "0", "none"], ["done", "1", "none"],
    ]  # fmt: skip
    at = head.index("gate")
    assert {row[at : at + 7].strip() for row in rows} == {"context", "none"}
    assert listed.err == f"4 runs in {finished}\n"
    facts = fine("list", finished, "--json").json
    assert [fact["run_id"] for fact in facts] == [row.split()[0] for row in rows]
    assert {"test_loss", "valid_loss", "params", "tokens_per_s", "error"} <= set(facts[0])
