"""mclab keys: every key, and the schemas of files."""

from tests.commands import (
    fine,
)


def test_keys() -> None:
    lines = fine("keys").out.splitlines()
    assert lines[0].split() == ["key", "type", "default", "meaning"]
    assert any(line.startswith("train.lr ") and "float > 0" in line and "0.01" in line for line in lines)
    paths = [key["path"] for key in fine("keys", "--json").json]
    assert {"model.mixer.gate", "task.pairs", "seed"} <= set(paths)
    assert len(lines) == len(paths) + 1


def test_the_schema_of_a_grid_is_json() -> None:
    schema = fine("keys", "--schema").json
    assert schema["properties"].keys() >= {"base", "grid", "changes", "select", "seeds", "quick"}
    assert fine("keys", "--schema", "grid").json == schema
    assert fine("keys", "--schema", "space").json["properties"].keys() >= {"base", "space", "objective", "sampler"}
