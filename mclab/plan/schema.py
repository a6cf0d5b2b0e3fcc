"""JSON schemas of grid files and search spaces, for editors: the keys, the values that they accept, their meaning.

A schema checks every key and value alone. Rules between keys (pairs fit into the length) are checked by `mclab ablate`,
and the rules of a range (low below high, a step or log) by `mclab sweep`.
"""

from collections.abc import Callable, Iterator
from typing import Any

from mclab.config.fields import PATH
from mclab.config.keys import Key, adapter, by_path, default_name, named_sections, sections, shown
from mclab.config.model.attention import PRESETS
from mclab.config.model.mixers import mixer_heads, names_schema
from mclab.config.variants import MOST_WEIGHT, WEIGHT, holds_variants
from mclab.plan.grid import KEYS
from mclab.plan.paper import PAPER, paper_schema
from mclab.plan.quick import KEYS as QUICK_KEYS
from mclab.plan.quick import QUICK
from mclab.plan.seeds import ERROR, FEWEST, LOOKS, MOST_SEEDS, SHARES, TOLD
from mclab.plan.select import METRICS
from mclab.plan.space import METRICS as OBJECTIVES
from mclab.plan.space_load import KEYS as SPACE_KEYS
from mclab.plan.space_load import MOST_REPEATS, PRUNERS, SAMPLERS

Schema = dict[str, Any]

#: The mapping that may be replaced by a name.
NAMED = "model.mixer"

#: The meaning of each key at the top of a grid.
MEANING = {
    "question": "what the grid asks; printed above the table",
    "base": "one full run; every key is optional",
    "grid": "keys with lists of values, of which every combination is a cell; the first cell is the baseline",
    "zip": "keys with lists of equal length, whose first values make a cell, the second values another, and so on",
    "changes": "names of rows, each with the keys that it changes in the base",
    "runs": "a list of rows, each with the keys that it changes in the base",
    "when": "a varied key exists only where its condition holds",
    "exclude": "every cell that matches one of these is dropped",
    "select": "a key whose value every cell chooses by its results on valid, from the same candidates",
    "seeds": "0..4 (both ends count), a list, or {until: told}: seeds are added until every row is decided",
    "paper": "the published figures of the rows; mclab reproduce compares the results with them",
    "quick": "the reduced form that --quick runs; each block replaces the grid's block, base replaces single keys",
}
#: The meaning of each key at the top of a search space.
SPACE_MEANING = {
    "question": "what the search asks; printed above the table",
    "base": "one full run, the search's first trial; every key is optional",
    "space": "keys to search, each with a list of values, or with {low, high} and log or a step",
    "when": "a searched key exists only where its condition holds",
    "exclude": "every point that matches one of these is refused",
    "objective": "the metric to search for; with a second metric, a cost, the front of both is searched",
    "sampler": "the method that chooses the points to try",
    "pruner": "median stops a run early if it is behind the median of the others; none stops no run",
    "repeats": "number of seeds over which a trial is averaged",
}


def grid_schema() -> Schema:
    """Return the JSON Schema (draft 7) of a grid file."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "mclab grid",
        **_closed({key: _top(key) for key in KEYS}),
        "definitions": dict(_definitions()),
    }


def space_schema() -> Schema:
    """Return the JSON Schema (draft 7) of a search space."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "mclab search space",
        **_closed({key: _space_top(key) for key in SPACE_KEYS}),
        "required": ["space"],
        "definitions": {**dict(_definitions()), **dict(_searched())},
    }


def _space_top(key: str) -> Schema:
    accuracy, loss, *costs = OBJECTIVES
    chosen: Schema = {"enum": [accuracy, loss]}
    several = {"type": "array", "minItems": 1, "maxItems": 2, "items": [chosen, {"enum": costs}]}
    blocks: dict[str, Schema] = {
        "space": _ref("space:"),
        "objective": _any(chosen, several),
        "sampler": {"enum": list(SAMPLERS)},
        "pruner": {"enum": list(PRUNERS)},
        "repeats": {"type": "integer", "minimum": 1, "maximum": MOST_REPEATS},
    }
    return (blocks.get(key) or _top(key)) | {"description": SPACE_MEANING[key]}


def _searched() -> Iterator[tuple[str, Schema]]:
    """Yield the schemas of the mappings in a space: a list or a range for every key except those of task and eval."""
    for room in sections():
        found = _mapping(room, "space", lambda path: _any(_list(_ref(path)), _range(path)))
        kept = {key: value for key, value in found["properties"].items() if _searchable(room or key)}
        yield f"space:{room}", _closed(kept) | {"minProperties": 1}


def _searchable(path: str) -> bool:
    return path.partition(".")[0] not in ("task", "eval")


def _range(path: str) -> Schema:
    """Return the schema of a range for a key that takes numbers; for other keys it matches nothing."""
    end = {"allOf": [_ref(path), {"type": "number"}]}
    inner = {"low": end, "high": end, "log": {"type": "boolean"}, "step": {"type": "number", "exclusiveMinimum": 0}}
    return _closed(inner) | {"required": ["low", "high"]}


def _top(key: str) -> Schema:
    blocks: dict[str, Callable[[], Schema]] = {
        "question": lambda: {"type": "string"},
        "base": lambda: _ref("base:"),
        "grid": lambda: _ref("axes:"),
        "zip": lambda: _ref("axes:"),
        "changes": lambda: {"type": "object", "minProperties": 1, "additionalProperties": _or_null(_ref("row:"))},
        "runs": lambda: {"type": "array", "minItems": 1, "items": _ref("row:")},
        "when": lambda: _ref("when:"),
        "exclude": lambda: {"type": "array", "items": _ref("condition:")},
        "select": _select,
        "seeds": _seeds,
        PAPER: lambda: paper_schema(_ref("condition:")),
        QUICK: lambda: _closed({key: _or_null(_top(key)) for key in QUICK_KEYS}),
    }
    return blocks[key]() | {"description": MEANING[key]}


def _select() -> Schema:
    inner = {
        "over": _ref("over:") | {"description": "keys with the values to choose from"},
        "by": {"enum": list(METRICS), "description": "the metric of the choice; test is only for the table"},
        "seeds": {"type": "integer", "minimum": 1, "description": "number of seeds for the choice, the first ones"},
    }
    return _closed(inner) | {"required": ["over"]}


def _seeds() -> Schema:
    numbers = {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}}
    return {"anyOf": [{"type": "string", "pattern": r"^\s*\d+\s*\.\.\s*\d+\s*$"}, numbers, _until()]}


def _until() -> Schema:
    """Return the schema of `{until: told}`, the rule of a sequential grid."""
    look = {"type": "integer", "minimum": FEWEST, "maximum": MOST_SEEDS}
    share = {"type": "number", "exclusiveMinimum": 0, "maximum": ERROR}
    inner: dict[str, Schema] = {
        "until": {"const": TOLD, "description": "a row stops when it differs from the baseline, is even or given up"},
        "looks": _list(look) | {"description": f"numbers of seeds at which rows are tested; default {list(LOOKS)}"},
        "shares": _list(share)
        | {"description": f"the part of the 5 % error for each look; default {list(SHARES)}, interpolated for others"},
        "even": {
            "type": "number",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
            "description": "a row within this margin of the baseline is even, in the unit of accuracy; default none",
        },
        "from": {"type": "integer", "minimum": 0, "description": "the first seed; default 0"},
    }
    return _closed(inner) | {"required": ["until"]}


def _definitions() -> Iterator[tuple[str, Schema]]:
    """Yield the schema of each key, and of each mapping in each of the ways in which a grid uses it."""
    for path, keys in by_path().items():
        yield path, _leaf(path, keys)
    for room in named_sections():
        yield f"value:{room}", _value(room)
    for room in sections():
        yield f"base:{room}", _mapping(room, "base", _ref, seed=True)
        yield f"axes:{room}", _mapping(room, "axes", lambda path: _list(_ref(path)))
        yield f"row:{room}", _mapping(room, "row", _ref)
        yield f"condition:{room}", _mapping(room, "condition", lambda path: _any(_ref(path), _list(_ref(path))))
        yield f"when:{room}", _mapping(room, "when", lambda path: _ref("condition:"))
    over = _mapping("", "axes", lambda path: _list(_ref(path)))
    kept = {key: value for key, value in over["properties"].items() if _searchable(key)}
    yield "over:", _closed(kept) | {"minProperties": 1}


def _mapping(room: str, way: str, leaf: Callable[[str], Schema], seed: bool = False) -> Schema:
    """Return the schema of the keys in the section `room`, dotted or in inner mappings.

    The keys of all mixers and tasks are allowed together.
    """
    inside = f"{room}." if room else ""
    found = {path.removeprefix(inside): leaf(path) for path in by_path() if path.startswith(inside)}
    if not seed:
        found.pop("seed", None)
    for inner in sections():
        if inner and inner != room and inner.startswith(inside):
            found[inner.removeprefix(inside)] = _room(inner, way)
    return _closed(found)


def _room(room: str, way: str) -> Schema:
    """Return the schema of a section within another section.

    It allows the keys of the inner section; in a row and in a list of values the inner section is given as a whole.
    """
    if way in ("axes", "space"):
        return _any(_ref(f"{way}:{room}"), _list(_whole(room)))
    opened = _or_null(_ref(f"{way}:{room}"))
    return _whole(room) if way == "row" else _any(opened, _word()) if (way, room) == ("base", NAMED) else opened


def _whole(room: str) -> Schema:
    return _ref(f"value:{room}") if room in named_sections() else _or_null(_ref(f"row:{room}"))


def _value(room: str) -> Schema:
    """Return the schema of a mixer or a task as one value: the keys of the one that is named, else of the default."""
    kinds = []
    for name, model in sections()[room].items():
        keys = {word: _leaf_of(by_path()[f"{room}.{word}"][name]) for word in model.model_fields if word != "name"}
        required = {} if name == default_name(room) else {"required": ["name"]}
        kinds.append(_closed({"name": {"const": name}, **keys}) | required)
    return _any(*kinds, *_presets(), _word()) if room == NAMED else _any(*kinds)


def _presets() -> Iterator[Schema]:
    """Yield the schema of a mixer for each preset. Only keys that the preset does not set are allowed."""
    for preset, meant in PRESETS.items():
        own = sections()[NAMED][meant["name"]].model_fields.keys() - meant.keys()
        keys = {word: _leaf_of(by_path()[f"{NAMED}.{word}"][meant["name"]]) for word in sorted(own)}
        yield _closed({"name": {"const": preset}, **keys}) | {"required": ["name"]}


def _word() -> Schema:
    names: Schema = names_schema(mixer_heads())
    names["anyOf"].append({"type": "string", "pattern": PATH})
    return names | {"description": "the name of a mixer, or the path of your own; its other keys have their defaults"}


def _leaf(path: str, keys: dict[str | None, Key]) -> Schema:
    """Return the schema of one key, which allows the values that any mixer or task accepts."""
    kinds: list[Schema] = []
    for key in keys.values():
        if (kind := _leaf_of(key)) not in kinds:
            kinds.append(kind)
    return kinds[0] if len(kinds) == 1 else _any(*kinds)


def _leaf_of(key: Key) -> Schema:
    owner = f" (only for {key.of})" if key.of else ""
    return _type(key) | {"description": f"{key.meaning}{owner}; default {shown(key.default)}"}


def _type(key: Key) -> Schema:
    room, _, word = key.path.rpartition(".")
    if word != "name" and holds_variants(sections()[room][key.of].model_fields[word].metadata):
        return _any(_variant(), _list(_variant()))
    kind: Schema = adapter(key.path, key.of).json_schema()
    if key.path == f"{NAMED}.name":
        return {"enum": [*kind["enum"], *PRESETS]}
    if kind.get("type") != "array":
        return kind
    if key.default == ():
        return _any(kind["items"], kind, {"type": "null"})
    return _any(kind["items"], kind | {"minItems": 1})


def _variant() -> Schema:
    """Return the schema of a variant: the keys of any task except name and vocab, each with one or more values."""
    room = "task."
    paths = [path for path in by_path() if path.startswith(room) and path[len(room) :] not in ("name", "vocab")]
    keys = {path.removeprefix(room): _any(_ref(path), _list(_ref(path))) for path in paths}
    share = {"type": "integer", "minimum": 1, "maximum": MOST_WEIGHT, "description": "the share of this task in a mix"}
    return _closed({**keys, WEIGHT: share}) | {"minProperties": 1}


def _closed(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _any(*kinds: Schema) -> Schema:
    return {"anyOf": list(kinds)}


def _or_null(kind: Schema) -> Schema:
    return _any(kind, {"type": "null"})


def _list(kind: Schema) -> Schema:
    return {"type": "array", "minItems": 1, "items": kind}
