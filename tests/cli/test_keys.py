"""mclab keys: every key, and the schemas of files."""

import pytest

from tests.commands import fine


def test_keys() -> None:
    text = fine("keys").out
    assert "\ntrain.lr: float > 0" in text
    paths = [key["path"] for key in fine("keys", "--json").json]
    assert {"model.mixer.gate", "task.pairs", "seed"} <= set(paths)
    assert [line.split()[0].rstrip(":") for line in text.splitlines() if line[0] != " "] == paths


@pytest.mark.parametrize("columns", [80, 50])
def test_keys_are_wrapped_at_the_width_of_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if columns != 80:
        monkeypatch.setenv("COLUMNS", str(columns))
    lengths = [len(line) for line in fine("keys").out.splitlines()]
    assert columns - 10 < max(lengths) <= columns


def test_keys_with_a_word_in_their_name_or_meaning() -> None:
    found = fine("keys", "LEARNING", "--json").json
    assert "train.lr" in [key["path"] for key in found]
    assert all("learning" in f"{key['path']} {key['meaning']}".lower() for key in found)
    assert fine("keys", "learning").out.count("; default ") == len(found) < 20


def test_the_schema_of_a_grid_is_json() -> None:
    schema = fine("keys", "--schema").json
    assert schema["properties"].keys() >= {"base", "grid", "changes", "select", "seeds", "quick"}
    assert fine("keys", "--schema", "grid").json == schema
    assert fine("keys", "--schema", "space").json["properties"].keys() >= {"base", "space", "objective", "sampler"}
