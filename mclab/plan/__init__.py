"""Turn YAML into cells, and cells into runs. Never imports torch.

grid.py         from a grid file to a plan; plan.py: the plan; cells.py: its cells, checked and merged
rows.py         what varies: `grid`, `zip`, `changes`, `runs`; conditions.py: `when` and `exclude`
select.py       candidates and how a cell chooses one; seeds.py: `seeds`; quick.py: `quick`; paper.py: `paper`
overrides.py    `train.steps=50`, `--seeds`, `--smoke`; only.py: `--only`
loader.py       YAML with line numbers; yaml_check.py: what no plan can use; source.py: the file; dotted.py: dotted keys
plan_json.py    plan.json, written and read; plan_diff.py: what a newer plan changes; schema.py: JSON schemas
space.py        a search space; space_load.py: its file; space_axes.py: its axes; space_trials.py: trials.json
confirm.py      the confirming grid of a search; comparable.py: the trials from which axes are judged
"""
